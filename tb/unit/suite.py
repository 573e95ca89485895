# SPDX-License-Identifier: Apache-2.0
"""All unit benches as one test: each bench, and each bus width of a block, is a check."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from driver.results import OpEvent, RunResult, RunSpec
from tb.checks import check_row, checks_result, picked
from tb.ops.runner import RunObserver
from tb.unit.arithmetic import run_arithmetic
from tb.unit.benches import ARITHMETIC, BLOCKS, BUS_WIDTHS
from tb.unit.block import run_block


@dataclass(frozen=True)
class UnitFindings:
    """What a bench said: how many results it compared, the first thing wrong, and its report."""

    compared: int
    failure: str
    """Empty when nothing is wrong."""
    report: str


@dataclass(frozen=True)
class UnitCheck:
    """One bench in one shape. `run` takes the seed."""

    name: str
    shape: str
    run: Callable[[int], UnitFindings]


def _arithmetic(name: str, seed: int) -> UnitFindings:
    found = run_arithmetic(name, None, seed)
    report = "".join(f"{line}\n" for line in found.differences)
    return UnitFindings(found.compared, found.differences[0] if found.differing else "", report)


def _block(name: str, bus_bits: int, seed: int) -> UnitFindings:
    found = run_block(name, bus_bits, seed)
    return UnitFindings(found.compared, found.failure, found.report)


CHECKS: tuple[UnitCheck, ...] = (
    *(UnitCheck(name, "16 lanes", partial(_arithmetic, name)) for name in ARITHMETIC),
    *(
        UnitCheck(name, f"bus of {bus_bits} bits", partial(_block, name, bus_bits))
        for name in BLOCKS
        for bus_bits in BUS_WIDTHS
    ),
)


def run_suite(spec: RunSpec, progress: RunObserver) -> RunResult:
    """Run the checks that the spec picks, one row each. The report of one that fails goes to
    standard error, the log of the run.

    InputError: a check or seed that does not exist. InfrastructureError: no tools, a bench that
    dies.
    """
    numbers = picked(spec, len(CHECKS))
    progress.plan(len(numbers))
    rows = []
    for index in numbers:
        check = CHECKS[index]
        found = check.run(spec.seed)
        if found.failure:
            sys.stderr.write(f"{check.name}, {check.shape}, seed {spec.seed}\n{found.report}")
        failure = found.failure or None
        rows.append(check_row(index, check.name, check.shape, found.compared, failure))
        progress.op(OpEvent.of(rows[-1]))
    return checks_result(spec, rows)
