# SPDX-License-Identifier: Apache-2.0
"""Every planted mutant in the run that must catch it, and again by the line that the run printed.

A run is a process of the command line, as a user starts it; result.json says what it found.
"""

from __future__ import annotations

import shlex
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Lock

from driver.errors import InfrastructureError, InputError
from driver.results import PROGRAM, RESULT_FILE, OpRow, RunResult, read_json
from tb.mutants.activation import sound_of
from tb.mutants.runs import UNITS
from tb.mutants.table import PLANTED
from tb.sim.spec import REPOSITORY

CONFIG = "small"
_LIMIT_S = 3600.0
_FAILED = 1
"""Exit status of a run with a verdict that is not a pass."""
_INTERRUPTED = 130
_SHOWN = 100


class NoVerdict(InfrastructureError):
    """A run that ended by itself without a verdict: the device stopped it, or the machine did."""


@dataclass(frozen=True)
class PlantedRun:
    """What the run of a mutant found, and what the printed line found."""

    name: str
    first: OpRow | None
    """The first row that failed; None when the mutant was not caught."""
    again: OpRow | None
    """The same by the printed line, None likewise."""
    reproduce: str

    @property
    def right(self) -> bool:
        """Whether the mutant was caught by what must catch it, blamed on the RTL, and found again
        where it was."""
        rows = (self.first, self.again)
        found = [row for row in rows if row is not None and row.blame == "rtl"]
        if len(found) < len(rows) or found[0].index != found[1].index:
            return False
        failures = [row.failure.detail for row in found if row.failure is not None]
        seen = PLANTED[self.name].mutant.seen
        return len(failures) == len(rows) and all(seen in text for text in failures)

    def line(self) -> str:
        """Its row of the table."""
        head = f"{self.name:20} {PLANTED[self.name].block:18}"
        if self.first is None:
            return f"{head} SURVIVED  {self.reproduce}"
        assert self.first.failure is not None
        again = "NOT REPRODUCED" if self.again is None else "reproduced"
        said = self.first.failure.detail.partition(" (log: ")[0]
        where = f"{' '.join(PLANTED[self.name].run[:1])} {self.first.index} {self.first.op}"
        return f"{head} {where}: blame {self.first.blame}, {again}  {said:.{_SHOWN}}"


@dataclass(frozen=True)
class BrokenRun:
    """A run without a verdict on an op."""

    name: str
    error: str
    right = False

    def line(self) -> str:
        """Its row of the table."""
        return f"{self.name:20} BROKE     {self.error}"


def run_planted(name: str, folder: Path, seed: int = 1) -> PlantedRun:
    """Run a mutant and what its run prints; results below `folder`.

    InputError: no such mutant. InfrastructureError: a run without a verdict, or one that the sound
    RTL fails as well.
    """
    arguments = PLANTED[name].run
    result = run_with(name, arguments, folder / name, seed)
    first = first_failed(result)
    if first is None:
        if result.status == "fail":
            raise InfrastructureError(f"{result.reproduce}: failed in no op, {result.message}")
        return PlantedRun(name, None, None, result.reproduce)
    require_sound(name, arguments, seed)
    again = first_failed(_run(shlex.split(result.reproduce), folder / f"{name}-again"))
    return PlantedRun(name, first, again, result.reproduce)


def run_with(
    mutant: str | None, arguments: Sequence[str], folder: Path, seed: int = 1
) -> RunResult:
    """`npu-cosim run` with a mutant, or without the build of any. InfrastructureError: no verdict.
    KeyboardInterrupt: the run was interrupted or killed, which says nothing of the mutant."""
    words = [PROGRAM, "run", *arguments, "--config", CONFIG, "--seed", str(seed)]
    return _run(words if mutant is None else [*words, "--mutant", mutant], folder)


_ONE_AT_A_TIME = Lock()


def require_sound(mutant: str, arguments: tuple[str, ...], seed: int = 1) -> RunResult:
    """A run that passes of the sound RTL, in the build that the mutant is in, run once for all.

    InfrastructureError where it does not pass: a run that the sound RTL fails finds every mutant.
    """
    with _ONE_AT_A_TIME:
        return _sound(_sound_name(mutant, arguments), arguments, seed)


def require_sound_now(mutant: str, arguments: tuple[str, ...]) -> RunResult:
    """The same, run now: what stops a mutant may be the machine, a full disk for one."""
    return _sound.__wrapped__(_sound_name(mutant, arguments), arguments, 1)


def _sound_name(mutant: str, arguments: tuple[str, ...]) -> str | None:
    return None if arguments == UNITS else sound_of(mutant)  # a bench builds what it has of a set


@cache
def _sound(name: str | None, arguments: tuple[str, ...], seed: int) -> RunResult:
    with tempfile.TemporaryDirectory(prefix="npu-sound-") as folder:
        result = run_with(name, arguments, Path(folder), seed)
    if result.status != "pass":
        raise InfrastructureError(f"{result.reproduce}: fails without a mutant, {result.message}")
    return result


def _run(words: list[str], folder: Path) -> RunResult:
    command = [*words, "--out", str(folder)]
    try:
        done = subprocess.run(
            command, cwd=REPOSITORY, capture_output=True, text=True, timeout=_LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise NoVerdict(f"{shlex.join(command)}: no end in {_LIMIT_S:g} s") from error
    if done.returncode == _INTERRUPTED or done.returncode < 0:
        raise KeyboardInterrupt
    if done.returncode not in (0, _FAILED):
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        text = f"{shlex.join(command)}: status {done.returncode}, {last}"
        kind = InfrastructureError if done.returncode == InputError.exit_code else NoVerdict
        raise kind(text)
    try:
        return read_json(folder / RESULT_FILE, RunResult)
    except InputError as error:  # Python's own status for a program that breaks is 1 as well
        raise InfrastructureError(f"{shlex.join(command)}: {error}") from error


def first_failed(result: RunResult) -> OpRow | None:
    """The first op or check that failed."""
    return next((row for row in result.ops if row.status == "fail"), None)
