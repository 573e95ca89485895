# SPDX-License-Identifier: Apache-2.0
"""A whole test of kind "cocotb": each UVM test in a simulator of its own, one row each."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

from driver.config import HwConfig
from driver.errors import InfrastructureError, InputError
from driver.reproduce import reproduce_line
from driver.results import (
    COCOTB_FOLDER,
    SPEC_FILE,
    Failure,
    OpEvent,
    OpRow,
    RunResult,
    RunSpec,
)
from tb.ops.runner import Progress
from tb.sim.build import build
from tb.sim.cocotb_run import CocotbRun, run_cocotb
from tb.sim.spec import spec_for

SPEC_VARIABLE = "NPU_RUN_SPEC"
SUMMARY_FILE = "summary.json"


def run_bench(spec: RunSpec, config: HwConfig, module: ModuleType, progress: Progress) -> RunResult:
    """Run the UVM tests that `module` lists, all or the one that the spec picks by number."""
    tests = list(enumerate(module.TESTS))
    if spec.op_filter is not None:
        tests = [pair for pair in tests if pair[0] == spec.op_filter]
        if not tests:
            expected = f"0 to {len(module.TESTS) - 1}"
            raise InputError("command line", "op", spec.op_filter, expected)
    elif spec.shard is not None:
        tests = [pair for pair in tests if spec.shard.holds(pair[0])]
        if not tests:
            raise InputError("command line", "shard", spec.shard, f"{len(module.TESTS)} at most")
    progress.plan(len(tests))
    variant = "cocotb" if spec.waves == "none" else f"cocotb-{spec.waves}"
    built = build(spec_for(config, variant))
    rows = []
    for index, name in tests:
        folder = spec.out / COCOTB_FOLDER / name
        run = CocotbRun(
            binary=built.binary,
            module=module.MODULE,
            tests=(name,),
            folder=folder,
            config=config,
            seed=spec.seed,
            timeout_s=spec.timeout_s,
            waves="" if spec.waves == "none" else f"waves.{spec.waves}",
            environment={SPEC_VARIABLE: str(spec.out / SPEC_FILE)},
        )
        row = _run_one(run, index, name)
        rows.append(row)
        progress.op(OpEvent.of(row))
    failed = [row for row in rows if row.status == "fail"]
    return RunResult(
        test=spec.test,
        status="fail" if failed else "pass",
        config=spec.config,
        seed=spec.seed,
        backend=spec.backend,
        cycles=None,
        wall_seconds=0.0,
        reproduce=reproduce_line(spec, failed[0].index if failed else None),
        message=None,
        ops=tuple(rows),
        ledger=(),
    )


def _run_one(run: CocotbRun, index: int, name: str) -> OpRow:
    summary_file = run.folder / SUMMARY_FILE
    summary_file.unlink(missing_ok=True)
    result = run_cocotb(run)
    compared = 0
    if summary_file.exists():
        compared = int(json.loads(summary_file.read_text(encoding="utf-8"))["compared"])
    elif result.passed:
        raise InfrastructureError(f"{name}: passed without a summary of what it compared")
    failure = None if result.passed else _failure(result.failures[name], run.folder)
    return OpRow(
        index=index,
        op=name,
        module=run.module,
        source="",
        where="rtl",
        dtype="",
        shapes=(),
        elements_compared=compared,
        rtl_vs_cmodel_mismatches=0 if result.passed else None,
        torch_max_error=None,
        torch_bound=None,
        cycles=None,
        macs=None,
        utilisation=None,
        status="pass" if result.passed else "fail",
        blame="none" if result.passed else "rtl",
        failure=failure,
    )


def _failure(text: str, folder: Path) -> Failure:
    return Failure(
        element=(),
        tile=None,
        expected_bits="0x0",
        actual_bits="0x0",
        expected=0.0,
        actual=0.0,
        cycle=None,
        detail=f"{text} (log: {folder / 'sim.log'})",
    )
