# SPDX-License-Identifier: Apache-2.0
"""Five nights of two models and directed tests with every state in them, for pages and screenshots.

`python tests/demo_nights.py FOLDER` leaves the store and its dashboard there, to be looked at.
"""

from __future__ import annotations

import random
import sys
from dataclasses import replace
from pathlib import Path

from night_host import attempt, plan, result, row, spec

from driver.evidence import MAP_FILE, error_map, folder_of
from driver.results import Failure, LedgerRow, OpRow, RunResult, write_json, write_text
from regress.analysis.baseline import measure, record
from regress.analysis.metrics import metrics_of
from regress.analysis.night_report import NightReport, ReferenceFiles
from regress.night_commands import report_pages
from regress.results.model import Attempt, JobStatus, Plan, PlannedJob, PreparationRecord, SkipCause
from regress.results.night import load_night
from regress.results.store import Store

NIGHTS = 5
CONFIGS = ("small", "default", "large")
KINDS = (
    ("aten.mm.default", "fp32"), ("aten.addmm.default", "fp32"), ("aten.bmm.default", "bf16"),
    ("aten.convolution.default", "fp32"), ("aten._softmax.default", "fp32"),
)  # fmt: skip
ISSUES = """issues:
  - {id: "#41", owner: Ada Lovelace, why: fp16 subnormals are flushed, expires: 2026-12-31,
     signature: "blame rtl.*aten.bmm"}
  - {id: "#7", owner: Alan Turing, why: nobody knows, expires: 2026-12-31,
     signature: "no such thing", test: smoke}
  - {id: "#3", owner: Grace Hopper, why: it is slow, expires: 2026-10-01, signature: "timeout"}
"""


def items() -> list[PlannedJob]:
    found = [PlannedJob("smoke", config, seed, "rtl") for config in CONFIGS for seed in (1, 2)]
    models = ("lenet", "qwen_layer")
    found += [
        PlannedJob("replay", c, 1, "rtl", workload=model) for model in models for c in CONFIGS
    ]
    found.append(PlannedJob("stalls", "small", 1, "rtl", skip="the bench is being rebuilt"))
    return [replace(one, ordinal=number) for number, one in enumerate(found)]


def wrong_element() -> Failure:
    """One bit too much."""
    return Failure(
        element=(5, 3), tile=(0, 0), expected_bits="0x3f9d70a4", actual_bits="0x3f9d70a5",
        expected=1.2300000190734863, actual=1.2300001382827759, cycle=4711,
        detail="the cmodel agrees with the integer-only chain, the RTL does not",
    )  # fmt: skip


def ops(of: PlannedJob, night: int, wrong: int | None) -> tuple[OpRow, ...]:
    """The rows of a job: products and others, one on the CPU, perhaps one wrong."""
    rng = random.Random(f"{of.id}")
    speed = {"small": 1.0, "default": 0.3, "large": 0.09}[of.config] * (1.02 if night == 4 else 1)
    rows = []
    for index in range(12 if of.workload else 6):
        op, dtype = KINDS[index % len(KINDS)]
        m, k, n = (rng.choice((8, 16, 64, 128)) for _ in range(3))
        cycles = round(m * k * n / 40 * speed) + 300
        size = {"small": 8, "default": 16, "large": 32}[of.config]
        name = f"{of.workload}:layers.{index}.proj" if of.workload else "shapes"
        rows.append(
            row(
                index, op=op, dtype=dtype, module=name, shapes=((m, k), (k, n)), macs=m * k * n,
                source=f"workloads/{of.workload}.py:{index + 9}" if of.workload else "",
                cycles=cycles, utilisation=min(m * k * n / (cycles * size**2), 1.0),
                elements_compared=m * n,
            )
        )  # fmt: skip
    if of.workload:
        on_cpu = {"where": "cpu", "cycles": None, "utilisation": None, "macs": None}
        rows[5] = rows[5].model_copy(update={**on_cpu, "op": "aten.max_pool2d.default"})
    if wrong is not None:
        update = {
            "status": "fail",
            "blame": "rtl",
            "failure": wrong_element(),
            "rtl_vs_cmodel_mismatches": 9,
        }
        rows[wrong] = rows[wrong].model_copy(update=update)
    return tuple(rows)


def state_of(of: PlannedJob, night: int) -> tuple[JobStatus, int | None]:
    """How a job ended that night, and which op was wrong."""
    table = {
        ("lenet", "default"): (JobStatus.FAIL, 0) if night in (4, 5) else (JobStatus.PASS, None),
        ("qwen_layer", "large"): (JobStatus.FAIL, 2),
        ("qwen_layer", "default"): (JobStatus.FAIL, 0) if night == 5 else (JobStatus.PASS, None),
        ("lenet", "large"): (JobStatus.TIMEOUT, None) if night == 5 else (JobStatus.PASS, None),
        ("lenet", "small"): (JobStatus.FAIL, 3) if night == 4 else (JobStatus.PASS, None),
    }
    if of.skip:
        return JobStatus.SKIPPED, None
    if of.test == "smoke" and of.seed == 2 and of.config == "large" and night == 5:
        return JobStatus.ERROR, None
    return table.get((of.workload or "", of.config), (JobStatus.PASS, None))


def leave(store: Store, made: Attempt, of: PlannedJob, left: RunResult, wrong: int | None) -> None:
    folder = store.path(made.folder)
    write_json(folder / "result.json", left)
    asked = spec(of.test, folder, of.seed, of.config)
    capsules = {"capsule": folder} if of.workload else {}
    write_json(folder / "run.json", asked.model_copy(update={"capsules": capsules}))
    write_text(folder / "sim.log", "starting the simulator\n%Warning: an example\nop 3 of 12\n")
    if wrong is None:
        return
    import numpy as np  # noqa: PLC0415 (only here)

    rng = np.random.default_rng(5)
    expected = rng.normal(size=(40, 72)).astype(np.float32).view(np.uint32)
    actual = expected.copy()
    actual[5, 3:12] ^= 1
    actual[8:16, 16:24] ^= rng.integers(0, 1 << 14, (8, 8), np.uint32)
    drawn = error_map(expected, actual, (5, 3), dtype="fp32", against="cmodel", tile_size=16)
    write_json(folder_of(folder, wrong) / MAP_FILE, drawn)


def add_night(store: Store, number: int) -> Plan:
    night = plan(number)
    stored = store.add_plan(night, items())
    for name, ok in (("build small check", True), ("capsule lenet seed 1", True)):
        store.add_preparation(
            PreparationRecord(
                night.id, name, ok, number > 1, 40.0 / number, 60.0 / number, "5f2a77c0e1"
            )
        )
    for of in items():
        state, wrong = state_of(of, number)
        cause = {"skip_cause": SkipCause.DECLARED} if state is JobStatus.SKIPPED else {}
        rows = ops(of, number, wrong)
        judged = state in (JobStatus.PASS, JobStatus.FAIL)
        cycles = sum(one.cycles or 0 for one in rows) if judged else None
        reason = {
            JobStatus.PASS: "",
            JobStatus.FAIL: f"op {wrong}: blame rtl",
            JobStatus.TIMEOUT: "stopped after 1800 s",
            JobStatus.ERROR: "the simulator was ended by SIGSEGV",
            JobStatus.SKIPPED: of.skip or "",
        }[state]
        made = attempt(
            night, of, state, reason=reason, cycles=cycles, seconds=20.0 + number, cpu_seconds=18.0,
            ops=len(rows) if judged else 0, failed_ops=int(wrong is not None), **cause,
        )  # fmt: skip
        if judged:
            ledger = (
                LedgerRow(op="aten.max_pool2d.default", where="cpu", count=1, reason="no lowering"),
            )
            left = result(of, rows).model_copy(update={"ledger": ledger if of.workload else ()})
            leave(store, made, of, left, wrong)
        store.add_attempt(made)
        if of.seed == 2 and of.config == "small" and number == NIGHTS:  # the retry hides nothing
            store.add_attempt(replace(made, number=2, result_hash="other"))
    return stored


def build(folder: Path) -> NightReport:
    """Five nights and the dashboard of the last."""
    issues, baselines = folder / "known.yaml", folder / "baselines"
    with Store.open(folder / "store") as store:
        (folder / "known.yaml").write_text(ISSUES)
        for number in range(1, NIGHTS + 1):
            stored = add_night(store, number)
            if number == NIGHTS - 1:
                night = load_night(store, stored)
                labels = [job.item.label for job in night.jobs]
                record(measure(night, metrics_of(night).ratchets()), labels, baselines)
            found = report_pages(store, stored.id, ReferenceFiles(issues, baselines))
        return found


if __name__ == "__main__":
    sys.stdout.write(f"{build(Path(sys.argv[1])).page}\n")
