# SPDX-License-Identifier: Apache-2.0
"""The clock of a time limit: the time that processes were given, not the time that passed.

On a loaded machine a sound job takes several times as long as alone, and a limit of wall-clock time
ends it as if it hung. This clock counts that it waits for a CPU at a quarter only. A process that
sleeps for ever and one that computes for ever both come to their limit, the second after at most
four times as long.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path

_INTERVAL_S = 5.0
"""Between two readings of /proc, which take some milliseconds each."""
_READINGS = 20
"""At least so many within a limit."""
_IDLE = 0.02
"""Below this part of a CPU the processes wait for something, not for a CPU."""
_SLOWEST = 4.0
"""No second of the clock takes longer than so many seconds."""
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def credited_s(passed_s: float, used_s: float) -> float:
    """What the clock advances while `passed_s` seconds pass in which the processes use `used_s`
    seconds of CPU: all of it where they wait or have a CPU for themselves, less where they share
    one."""
    if used_s < _IDLE * passed_s:
        return passed_s
    return min(passed_s, max(used_s, passed_s / _SLOWEST))


def cpu_seconds(root: int) -> float:
    """CPU time of process `root`, its descendants, and those of them that have ended."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal():
            continue
        with contextlib.suppress(OSError):  # it has ended since
            fields = (folder / "stat").read_text(errors="replace").rpartition(") ")[2].split()
            parents[int(folder.name)] = int(fields[1])
            ticks[int(folder.name)] = sum(map(int, fields[11:15]))
    children: dict[int, list[int]] = {}
    for process, parent in parents.items():
        children.setdefault(parent, []).append(process)
    total, todo = 0, [root]
    while todo:
        process = todo.pop()
        total += ticks.get(process, 0)
        todo += children.get(process, [])
    return total / _TICKS_PER_S


class JobClock:
    """Counts the time of a process and its descendants up to a limit."""

    def __init__(
        self,
        root: int,
        limit_s: float,
        now: Callable[[], float] = time.monotonic,
        cpu: Callable[[int], float] = cpu_seconds,
    ) -> None:
        """`root`: the process id. `now` and `cpu` give seconds."""
        self._root, self._limit_s = root, limit_s
        self._now, self._cpu = now, cpu
        self._interval_s = min(_INTERVAL_S, limit_s / _READINGS)
        self._read_at, self._used_s = now(), cpu(root)
        self._seconds = 0.0

    def over(self) -> bool:
        """Whether the limit is reached; to be asked more often than once in an interval."""
        now = self._now()
        if now - self._read_at >= self._interval_s:
            used_s = self._cpu(self._root)
            self._seconds += credited_s(now - self._read_at, max(0.0, used_s - self._used_s))
            self._read_at, self._used_s = now, used_s
        return self._seconds >= self._limit_s
