# SPDX-License-Identifier: Apache-2.0
"""The command line of the unit benches: `python -m tb.unit.run mem --seed 1`, and of the mutants.

Exit status: 0 no difference, 1 a difference or a broken rule, 2 bad input, 3 infrastructure.
"""

from __future__ import annotations

import argparse
import logging
import shlex
import sys
from pathlib import Path

from driver.errors import InputError, NpuError
from tb.unit.arithmetic import run_arithmetic
from tb.unit.benches import ARITHMETIC, BLOCKS, BUS_WIDTHS, CONVERSIONS
from tb.unit.block import run_block
from tb.unit.campaign import print_campaign

MUTANT_CAMPAIGN = "mutants"


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tb.unit.run", description=__doc__)
    tests = parser.add_subparsers(dest="test", required=True)
    for name in (*ARITHMETIC, *BLOCKS, MUTANT_CAMPAIGN):
        test = tests.add_parser(name)
        test.add_argument("--seed", type=int, default=1)
        if name in ARITHMETIC:
            test.add_argument("--vectors", type=Path, help="a file in Berkeley TestFloat's format")
            test.add_argument("--operation", help=f"of the file: {', '.join(CONVERSIONS)}")
            test.add_argument("--count", type=int, help="random vectors per operation")
            test.add_argument("--result", type=Path, help="write the counts here as JSON")
        elif name in BLOCKS:
            test.add_argument("--bus", type=int, help=f"bits, of {BUS_WIDTHS}; without it, all")
            test.add_argument("--size", type=int, help="rows of the array, or lanes; with --bus")
            test.add_argument("--rounds", type=int, help="scales the random parts")
    return parser


def _run_arithmetic(given: argparse.Namespace) -> bool:
    """Print the first differences and the counts. Whether all is right."""
    found = run_arithmetic(
        given.test,
        given.vectors,
        given.seed,
        operation=given.operation,
        count=given.count,
        result=given.result,
    )
    counts = f"{found.compared} compared, {found.differing} differing, seed {found.seed}"
    sys.stdout.write("\n".join([*found.differences, f"{found.test}: {counts}\n"]))
    right = found.compared > 0 and not found.differing
    if not right:
        _print_reproduce(given)
    return right


def _run_block(given: argparse.Namespace) -> bool:
    """Print the report of each shape. Whether all is right."""
    bench = BLOCKS[given.test]
    if given.bus is None and given.size is not None:
        raise InputError("command line", "size", given.size, "also --bus")
    one = [] if given.bus is None else [(given.bus, bench.size_at(given.bus, given.size))]
    right = True
    for bus_bits, size in one or bench.shapes():
        shape = {"bus": bus_bits} | ({"size": size} if size else {})
        found = run_block(given.test, bus_bits, given.seed, given.rounds, size=size)
        named = ", ".join(f"{key} {value}" for key, value in shape.items())
        sys.stdout.write(f"{named}, seed {given.seed}\n{found.report}")
        if found.failure or not found.compared:
            sys.stdout.write(f"{found.failure or 'nothing was compared'}\n")
            _print_reproduce(given, **shape)
            right = False
    return right


def _print_reproduce(given: argparse.Namespace, **narrower: int) -> None:
    """The line that runs the failing bench again, in the shape in which it failed."""
    options = {name: value for name, value in vars(given).items() if name not in ("test", "result")}
    words = [
        f"--{name} {shlex.quote(str(value))}"
        for name, value in (options | narrower).items()
        if value is not None
    ]
    sys.stdout.write(f"reproduce  .venv/bin/python -m tb.unit.run {given.test} {' '.join(words)}\n")


def _run(given: argparse.Namespace) -> bool:
    if given.test == MUTANT_CAMPAIGN:
        return print_campaign(given.seed)
    return _run_arithmetic(given) if given.test in ARITHMETIC else _run_block(given)


def main() -> int:
    """Run the bench that the command line names; errors are one line on stderr."""
    given = _arguments().parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
    try:
        right = _run(given)
    except NpuError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
