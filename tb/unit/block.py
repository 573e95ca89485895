# SPDX-License-Identifier: Apache-2.0
"""Runs the bench of a block and reads what it found. Knows nothing of what is inside.

The program's arguments are seed, rounds and the file for its result. Exit status of the command
line: 0 no difference, 1 a difference or a broken rule, 2 bad input, 3 infrastructure.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from driver.errors import InfrastructureError, InputError, NpuError
from tb.unit.model import BUS_WIDTHS

_TIMEOUT_S = 1800.0
_MAX_SEED = 10**9


@dataclass(frozen=True)
class BlockResult:
    """What the bench found; `failure` is empty or the first thing wrong."""

    bus_bits: int
    seed: int
    compared: int
    """Bytes, or commands where the bench compares those."""
    failure: str
    figures: Mapping[str, float]
    """Rates by name."""
    report: str = field(repr=False, default="")


def run_block(
    program: Path, bus_bits: int, seed: int, rounds: int, plusargs: Sequence[str] = ()
) -> BlockResult:
    """Run the program of a bench; `rounds` scales the random parts.

    InputError: an argument out of range. InfrastructureError: a bench that dies.
    """
    for name, value in (("seed", seed), ("rounds", rounds)):
        if not 0 < value < _MAX_SEED:
            raise InputError("command line", name, value, f"1 to {_MAX_SEED - 1}")
    with tempfile.TemporaryDirectory() as scratch:
        found = Path(scratch) / "result.json"
        try:
            done = subprocess.run(
                [str(program), str(seed), str(rounds), str(found), *plusargs],
                capture_output=True,
                text=True,
                timeout=_TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise InfrastructureError(f"{program.name}: {error}") from error
        if found.is_file():
            return BlockResult(bus_bits, seed, **json.loads(found.read_text()), report=done.stdout)
    # An assertion of the RTL ends the program; Verilator puts its message on standard output.
    errors = [line for line in done.stdout.splitlines() if "%Error" in line or "Error:" in line]
    if not errors:
        raise InfrastructureError(f"{program.name} ended with status {done.returncode}")
    return BlockResult(bus_bits, seed, 0, errors[0], {}, report=done.stdout)


def block_main(name: str, run: Callable[[int, int, int], BlockResult], rounds: int) -> int:
    """Command line of a bench: print its report for each bus width; errors are one line."""
    parser = argparse.ArgumentParser(prog=f"python -m tb.unit.{name}.run")
    parser.add_argument("--bus", type=int, help=f"bits, of {BUS_WIDTHS}; without it, all of them")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=rounds, help="scales the random parts")
    given = parser.parse_args()
    failed = False
    try:
        for bus_bits in BUS_WIDTHS if given.bus is None else (given.bus,):
            result = run(bus_bits, given.seed, given.rounds)
            sys.stdout.write(f"bus {bus_bits}, seed {given.seed}\n{result.report}")
            failed |= bool(result.failure)
    except NpuError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return int(failed)
