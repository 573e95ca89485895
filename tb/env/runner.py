# SPDX-License-Identifier: Apache-2.0
"""Runs a test of kind "cocotb": each of its UVM tests in a simulator of its own, one row each."""

from __future__ import annotations

import json
from types import ModuleType

from driver.backend.rtl_errors import rtl_error
from driver.config import HwConfig
from driver.errors import InfrastructureError, VerdictError
from driver.results import COCOTB_FOLDER, SPEC_FILE, OpEvent, OpRow, RunResult, RunSpec
from tb.checks import check_row, checks_result, picked
from tb.env.handover import SPEC_VARIABLE, SUMMARY_FILE
from tb.env.verdict import Mismatch
from tb.mutants.activation import activation, with_mutant
from tb.ops.runner import RunObserver
from tb.ops.stopped import RunBroken
from tb.sim.build import build
from tb.sim.cocotb_run import CocotbRun, run_cocotb
from tb.sim.spec import spec_for


def run_bench(
    spec: RunSpec, config: HwConfig, module: ModuleType, progress: RunObserver
) -> RunResult:
    """Run the UVM tests that `module` lists, all or the one that the spec picks by number."""
    tests = [(index, module.TESTS[index]) for index in picked(spec, len(module.TESTS))]
    progress.plan(len(tests))
    variant = "cocotb" if spec.waves == "none" else "cocotb-waves"
    built = build(spec_for(config, with_mutant(variant, spec.mutant)))
    rows: list[OpRow] = []
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
            arguments=activation(spec.mutant),
            environment={SPEC_VARIABLE: str(spec.out / SPEC_FILE)},
        )
        try:
            row = _run_one(run, index, name)
        except InfrastructureError as error:
            result = checks_result(spec, rows, (index, f"{name}: {error}"))
            raise RunBroken(result, error) from error
        rows.append(row)
        progress.op(OpEvent.of(row))
    return checks_result(spec, rows)


def _run_one(run: CocotbRun, index: int, name: str) -> OpRow:
    summary_file = run.folder / SUMMARY_FILE
    summary_file.unlink(missing_ok=True)
    try:
        result = run_cocotb(run)
    except VerdictError as error:  # an assertion of the RTL or of a checker, or a loop
        return check_row(index, name, run.module, 0, str(error))
    compared = 0
    if summary_file.exists():
        compared = int(json.loads(summary_file.read_text(encoding="utf-8"))["compared"])
    elif result.passed:
        raise InfrastructureError(f"{name}: passed without a summary of what it compared")
    failure = None
    if not result.passed:
        if result.kinds[name] != Mismatch.__name__:
            # A device that breaks AXI may break the library that drives it, in the same cycle.
            by_rtl = rtl_error(result.log)
            if by_rtl is not None:
                return check_row(index, name, run.module, compared, str(by_rtl))
            what = f"{result.kinds[name] or 'error'}: {result.failures[name]}"
            raise InfrastructureError(f"the bench broke, {what} (log: {run.folder / 'sim.log'})")
        failure = f"{result.failures[name]} (log: {run.folder / 'sim.log'})"
    return check_row(index, name, run.module, compared, failure)
