# SPDX-License-Identifier: Apache-2.0
"""All unit benches as one test: each bench, and each shape of a block, is a check."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from driver.errors import InputError
from driver.results import OpEvent, RunResult, RunSpec
from tb.checks import check_row, checks_result, picked
from tb.ops.runner import RunObserver
from tb.unit.arithmetic import run_arithmetic
from tb.unit.benches import ARITHMETIC, BLOCKS, rtl_files
from tb.unit.block import run_block
from tb.unit.mutants import has_mutant


@dataclass(frozen=True)
class UnitFindings:
    """What a bench said: how many results it compared, the first thing wrong, and its report."""

    compared: int
    failure: str
    """Empty when nothing is wrong."""
    report: str


@dataclass(frozen=True)
class UnitCheck:
    """One bench in one shape. `run` takes the seed, and the mutant that is active."""

    name: str
    shape: str
    run: Callable[[int, str | None], UnitFindings]


def _arithmetic(name: str, seed: int, mutant: str | None) -> UnitFindings:
    found = run_arithmetic(name, None, seed, mutant=mutant)
    report = "".join(f"{line}\n" for line in found.differences)
    return UnitFindings(found.compared, found.differences[0] if found.differing else "", report)


def _block(
    name: str, bus_bits: int, size: int | None, seed: int, mutant: str | None
) -> UnitFindings:
    found = run_block(name, bus_bits, seed, mutant=mutant, size=size)
    return UnitFindings(found.compared, found.failure, found.report)


def _shape(bus_bits: int, size: int | None) -> str:
    return f"bus of {bus_bits} bits" + (f", size {size}" if size else "")


CHECKS: tuple[UnitCheck, ...] = (
    *(UnitCheck(name, "16 lanes", partial(_arithmetic, name)) for name in ARITHMETIC),
    *(
        UnitCheck(name, _shape(bus_bits, size), partial(_block, name, bus_bits, size))
        for name, bench in BLOCKS.items()
        for bus_bits, size in bench.shapes()
    ),
)


def checks_with(mutant: str) -> list[int]:
    """Numbers of the checks whose RTL a mutant is in. InputError: no such mutant."""
    return [
        number for number, check in enumerate(CHECKS) if has_mutant(mutant, rtl_files(check.name))
    ]


def _chosen(spec: RunSpec) -> list[int]:
    """The checks that the spec picks; of those of a mutant the benches whose RTL it is in."""
    numbers = picked(spec, len(CHECKS))
    if spec.mutant is None or spec.op_filter is not None:
        return numbers
    having = set(checks_with(spec.mutant))
    chosen = [number for number in numbers if number in having]
    if not chosen:
        raise InputError("command line", "mutant", spec.mutant, "one in the RTL of these benches")
    return chosen


def run_suite(spec: RunSpec, progress: RunObserver) -> RunResult:
    """Run the checks that the spec picks, one row each. The report of one that fails goes to
    standard error, the log of the run.

    InputError: a check or seed that does not exist, a mutant that is in no bench.
    InfrastructureError: no tools, a bench that dies.
    """
    numbers = _chosen(spec)
    progress.plan(len(numbers))
    rows = []
    for index in numbers:
        check = CHECKS[index]
        found = check.run(spec.seed, spec.mutant)
        if found.failure:
            sys.stderr.write(f"{check.name}, {check.shape}, seed {spec.seed}\n{found.report}")
        failure = found.failure or None
        rows.append(check_row(index, check.name, check.shape, found.compared, failure))
        progress.op(OpEvent.of(rows[-1]))
    return checks_result(spec, rows)
