# SPDX-License-Identifier: Apache-2.0
"""Child processes that never outlive their run: own process group, time limit, clean end.

Knows nothing of tests or results.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from driver.errors import InfrastructureError, unwritable
from regress.job_clock import JobClock
from regress.paths import ROOT
from regress.variables import VARIABLES

_POLL_S = 0.2
_GRACE_S = 5.0
_CHUNK_BYTES = 65536
_LAUNCHER = Path(__file__).with_name("launch.py")

# What make hands down must not steer make, cocotb or Verilator inside a run.
_NOT_INHERITED = frozenset((*VARIABLES, "MAKEFLAGS", "MFLAGS", "MAKELEVEL", "COCOTB_TESTCASE"))


@dataclass(frozen=True)
class Ended:
    """How a child ended. `status` is negative for a signal."""

    status: int
    timed_out: bool
    seconds: float

    def describe(self, limit_s: float) -> str:
        """In words, for a message."""
        if self.timed_out:
            return f"was stopped after its time limit of {limit_s:g} s"
        if self.status < 0:
            return f"was ended by {signal.Signals(-self.status).name}"
        return f"ended with status {self.status}"


def environment() -> dict[str, str]:
    """The environment of a child: the user's without what make put there.

    torch's threads sleep while they wait, unless the user says otherwise. By default they spin, and
    a run of small ops takes ten times as long on a machine whose CPUs have other work.
    """
    given = {k: v for k, v in os.environ.items() if k not in _NOT_INHERITED}
    return {"OMP_WAIT_POLICY": "PASSIVE"} | given | {"PYTHONUNBUFFERED": "1"}


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """Let SIGTERM and SIGHUP unwind the stack as Ctrl-C does, so that children are ended."""

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    numbers = (signal.SIGTERM, signal.SIGHUP)
    former = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def bound(command: Sequence[str]) -> list[str]:
    """The command as one whose processes end with this process, whatever ends it."""
    return [sys.executable, "-I", "-S", str(_LAUNCHER), str(os.getpid()), *command]


def execute(
    command: Sequence[str],
    log: Path,
    limit_s: float,
    on_line: Callable[[str], None],
    on_idle: Callable[[], None] = lambda: None,
) -> Ended:
    """Run a command at the project's root; its stdout comes line by line, its stderr goes to `log`.

    The limit is one of the clock of regress.job_clock: waiting for a CPU hardly counts.
    Whatever ends this call — the child's end, the limit, an exception, Ctrl-C, SIGKILL of this
    process — no process of the child's group is left. InputError when the log cannot be written,
    InfrastructureError when the command cannot be started.
    """
    start = time.monotonic()
    if shutil.which(command[0]) is None:
        raise InfrastructureError(f"{command[0]} does not start: no such program")
    with _log(log) as stderr:
        try:
            child = subprocess.Popen(
                bound(command),
                cwd=ROOT,
                env=environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                start_new_session=True,
            )
        except OSError as error:
            raise InfrastructureError(f"{sys.executable}: {error.strerror}") from error
    timed_out = False
    try:
        timed_out = not _pump(child, JobClock(child.pid, limit_s), on_line, on_idle)
    finally:
        _end(child)
    return Ended(child.returncode, timed_out, time.monotonic() - start)


def _log(path: Path) -> BinaryIO:
    """The log, empty; others may append to it too. What a symbolic link names is not touched."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_NOFOLLOW
    try:
        return os.fdopen(os.open(path, flags, 0o644), "ab")
    except OSError as error:
        raise unwritable(path, "file", error, "a log that can be written") from error


def _pump(
    child: subprocess.Popen[bytes],
    clock: JobClock,
    on_line: Callable[[str], None],
    on_idle: Callable[[], None],
) -> bool:
    """Pass lines on until the child has ended; False when the limit came first."""
    assert child.stdout is not None
    pending = b""
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        while not clock.over():
            data = b""
            ready = bool(selector.select(_POLL_S))
            if ready:
                data = os.read(child.stdout.fileno(), _CHUNK_BYTES)
                *lines, pending = (pending + data).split(b"\n")
                for line in lines:
                    on_line(line.decode(errors="replace"))
            # A grandchild may hold the pipe open: silence after the child's end is its end too.
            if (ready and not data) or (not ready and child.poll() is not None):
                if pending:
                    on_line(pending.decode(errors="replace"))
                return _wait(child, clock)
            on_idle()
    return False


def _wait(child: subprocess.Popen[bytes], clock: JobClock) -> bool:
    while not clock.over():
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(_POLL_S)
            return True
    return False


def _end(child: subprocess.Popen[bytes]) -> None:
    """Interrupt the child, give it a moment to end its own children, then end the whole group."""
    try:
        if child.poll() is None:
            _signal(child.pid, signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(_GRACE_S)
    finally:
        _signal(child.pid, signal.SIGKILL)
        child.wait()
        if child.stdout is not None:
            child.stdout.close()


def _signal(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, number)


def last_lines(log: Path, count: int) -> list[str]:
    """The last lines of a log that say something."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _CHUNK_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return []
    return [line.rstrip() for line in text.splitlines() if line.strip()][-count:]
