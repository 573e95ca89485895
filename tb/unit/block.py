# SPDX-License-Identifier: Apache-2.0
"""Runs the bench of a block and reads what it found. Knows nothing of what is inside.

The program's arguments are seed, rounds, the file for its result, and plusargs of the RTL.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from driver.errors import InfrastructureError, InputError
from tb.unit.benches import BLOCKS, block_program
from tb.unit.model import build_model
from tb.unit.mutants import mutant_arguments

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
    name: str,
    bus_bits: int,
    seed: int = 1,
    rounds: int | None = None,
    mutant: int | str | None = None,
    *,
    size: int | None = None,
) -> BlockResult:
    """Build and run a bench. Figures are rates and cycles at a DRAM latency of 100.

    `rounds` scales the random parts; the table's number when None. With `mutant` the RTL has wrong
    lines (tb.unit.mutants), and that one is active. `size` is that of the engine, the first that
    the table has at this bus width when None.
    InputError: an argument out of range. InfrastructureError: no tools, a bench that dies.
    """
    program = build_model(block_program(name, bus_bits, mutant, size))
    chosen = BLOCKS[name].rounds if rounds is None else rounds
    return run_program(program, bus_bits, seed, chosen, mutant_arguments(name, mutant))


def run_program(
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
            said = json.loads(found.read_text())
            if 0 <= done.returncode <= bool(said["failure"]):
                return BlockResult(bus_bits, seed, **said, report=done.stdout)
    # An assertion of the RTL ends the program; Verilator puts its message on standard output.
    errors = [line for line in done.stdout.splitlines() if "%Error" in line or "Error:" in line]
    if not errors:
        raise InfrastructureError(f"{program.name} ended with status {done.returncode}")
    return BlockResult(bus_bits, seed, 0, errors[0], {}, report=done.stdout)
