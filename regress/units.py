# SPDX-License-Identifier: Apache-2.0
"""The RTL unit benches, each started as a program of tb/unit. Knows names and exit statuses only.

An arithmetic bench is a top level in tb/unit/hdl and reads vector files; the bench of a block is a
folder of tb/unit with a main.cpp.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from driver.errors import InfrastructureError, InputError
from regress.paths import BUILD, ROOT
from regress.process import execute, last_lines, terminable

FOLDER = ROOT / "tb" / "unit"
LIMIT_S = 1800.0
MUTANTS = "mutants"
"""In place of a bench: planted errors, each on the bench that must catch it."""
_STATUSES = (0, 1, 2, 3)
_ERROR_LINES = 8


def arithmetic_units() -> tuple[str, ...]:
    """Names of the benches that read vector files."""
    return tuple(sorted(path.stem for path in (FOLDER / "hdl").glob("*.sv")))


def known_units() -> tuple[str, ...]:
    """Names of all benches."""
    blocks = sorted(path.parent.name for path in FOLDER.glob("*/main.cpp"))
    return (*arithmetic_units(), *blocks)


def unit_command(name: str, vectors: Path | None, seed: int) -> list[str]:
    """The command of a bench. InputError for an unknown one, or vectors it cannot read."""
    known = (*known_units(), MUTANTS)
    if name not in known:
        expected = f"one of {', '.join(known)}"
        raise InputError("command line", "TEST", name or "nothing", expected)
    arithmetic = arithmetic_units()
    command = [sys.executable, "-m", "tb.unit.run", name, "--seed", str(seed)]
    if vectors is None:
        return command
    if name not in arithmetic:
        expected = f"none; the benches with vectors are {', '.join(arithmetic)}"
        raise InputError("command line", "VECTORS", vectors, expected)
    if not vectors.is_file():
        raise InputError(vectors, "VECTORS", "no file", "vectors in TestFloat's format")
    return [*command, "--vectors", str(vectors.absolute())]


def run_unit(name: str, command: list[str], show: Callable[[str], None]) -> int:
    """Run a bench and show its lines as they come. Its exit status."""
    log = BUILD / "unit" / f"{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with terminable():
        ended = execute(command, log, LIMIT_S, show)
    if ended.timed_out or ended.status not in _STATUSES:
        raise InfrastructureError(f"unit bench {name} {ended.describe(LIMIT_S)}; see {log}")
    for line in last_lines(log, _ERROR_LINES if ended.status > 1 else 0):
        sys.stderr.write(f"error: {line.removeprefix('error: ')}\n")
    return ended.status
