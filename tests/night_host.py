# SPDX-License-Identifier: Apache-2.0
"""Stores with nights in them, for tests of what reads them."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from driver.results import OpRow, RunResult, RunSpec, write_json
from regress.nightly.job import collected
from regress.paths import CONFIG_FILE
from regress.progress import ProgressBar
from regress.results.model import Attempt, JobStatus, Plan, PlannedJob, digest
from regress.results.store import Store
from regress.run import run

RUNNER = (sys.executable, str(Path(__file__).with_name("wrong_runner.py")))


def silent(title: str) -> ProgressBar:
    """A progress that nobody sees."""
    return ProgressBar(Console(file=open(os.devnull, "w")), title)  # noqa: PTH123


def plan(number: int) -> Plan:
    """The plan of night `number`."""
    return Plan(
        id=digest(["night", number], 12),
        tier="nightly",
        created_utc=f"2026-11-{number:02}T02:00:00+00:00",
        seed=7,
        revision=f"{number:02}" * 20,
        dirty=False,
        tools={"python": "3.11.2", "verilator": "5.048"},
        config_file="sim_config.yaml",
        config_digest="c" * 64,
        command="make nightly",
    )


def item(test: str = "smoke", config: str = "small", seed: int = 1, ordinal: int = 0) -> PlannedJob:
    """An item of a plan."""
    return PlannedJob(test, config, seed, "rtl", ordinal=ordinal)


def attempt(night: Plan, of: PlannedJob, state: JobStatus, **fields: object) -> Attempt:
    """An attempt whose folder is named after it."""
    made = Attempt(night.id, of.id, 1, state)
    folder = f"{night.id}/{of.id}"
    hashes = {"result_hash": digest([state]), "inputs_hash": digest([of.id, night.revision])}
    started = {"started_utc": night.created_utc, "seconds": 10.0, "worker": "host:1"}
    return replace(made, **{"folder": folder, **hashes, **started, **fields})  # type: ignore[arg-type]


def spec(test: str, out: Path, seed: int = 1, config: str = "small") -> RunSpec:
    """What a job was asked."""
    return RunSpec(
        test=test, config=config, config_file=CONFIG_FILE, seed=seed, backend="rtl", waves="none",
        out=out, capsules={}, op_filter=None, timeout_s=120.0,
    )  # fmt: skip


def row(index: int = 0, **fields: object) -> OpRow:
    """An op that passed."""
    passed = {
        "index": index, "op": "aten.mm.default", "module": f"lenet:fc{index}",
        "source": "workloads/lenet.py:9", "where": "rtl", "dtype": "fp32",
        "shapes": ((8, 16), (16, 32)), "elements_compared": 256, "rtl_vs_cmodel_mismatches": 0,
        "torch_max_error": 1e-7, "torch_bound": 1e-6, "cycles": 400 + 10 * index, "macs": 4096,
        "utilisation": 0.16, "status": "pass", "blame": "none", "failure": None,
    }  # fmt: skip
    return OpRow(**{**passed, **fields})  # type: ignore[arg-type]


def result(of: PlannedJob, ops: tuple[OpRow, ...], message: str | None = None) -> RunResult:
    """The result of a job with these ops."""
    failed = any(op.status == "fail" for op in ops)
    status = "fail" if failed else ("error" if message else "pass")
    return RunResult(
        test=of.test, status=status, config=of.config, seed=of.seed, backend=of.backend,
        cycles=sum(op.cycles or 0 for op in ops), wall_seconds=9.0, reproduce="line",
        message=message, ops=ops, ledger=(),
    )  # fmt: skip


def add(
    store: Store, night: Plan, tried: list[tuple[PlannedJob, Attempt, RunResult | None]]
) -> Plan:
    """Store a night whose jobs left these results."""
    stored = store.add_plan(night, [of for of, _, _ in tried])
    for of, made, left in tried:
        folder = store.path(made.folder)
        if left is not None:
            write_json(folder / "result.json", left)
            write_json(folder / "run.json", spec(of.test, folder, of.seed, of.config))
        store.add_attempt(made)
    return stored


def wrong_night(store: Store, *, hashed: bool = False) -> tuple[Plan, PlannedJob, Attempt]:
    """A night of one job that really ran on a wrong device, with all the files it left. `hashed`:
    and what they contained, so that a test cannot change them."""
    night, of = plan(1), item()
    stored = store.add_plan(night, [of])
    made = attempt(night, of, JobStatus.FAIL)
    folder = store.path(made.folder)
    outcome = run(spec(of.test, folder), silent(of.test), RUNNER)
    failed = [op for op in outcome.result.ops if op.status == "fail"]
    made = replace(
        made, reason=f"op {failed[0].index}", ops=len(outcome.result.ops), failed_ops=len(failed)
    )
    if hashed:
        made = collected(made, folder, store.folder)
    store.add_attempt(made)
    return stored, of, made
