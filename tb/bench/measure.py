# SPDX-License-Identifier: Apache-2.0
"""How a figure is taken on a machine that is shared and noisy.

CPU time instead of wall clock, the two sides of a ratio in turns, the median of the rounds.
"""

from __future__ import annotations

import json
import resource
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

Note = Callable[[str], None]
Clock = Callable[[], float]
_CPU_CLOCK = 2
"""Of a process: the low bits of the number of its clock, as clock_getcpuclockid(3) makes it."""


@dataclass(frozen=True)
class Measurement:
    """A figure: the median, and the largest less the smallest of the rounds (0 when exact)."""

    value: float
    spread: float

    def to_json(self) -> str:
        """One line."""
        return json.dumps(asdict(self))


def own_cpu_seconds() -> float:
    """CPU time so far of this process, its threads, and the children it has waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def process_cpu_seconds(pid: int) -> float:
    """CPU time so far of a running process and its threads, to the nanosecond: /proc counts ticks
    of 10 ms, and a short command takes nine."""
    return time.clock_gettime((~pid << 3) | _CPU_CLOCK)


def timed(call: Callable[[], object], clock: Clock = own_cpu_seconds) -> float:
    """What `clock` advances during `call`."""
    start = clock()
    call()
    return clock() - start


def interleaved(left: Callable[[], float], right: Callable[[], float], rounds: int) -> Measurement:
    """Seconds of `left` ÷ `right`: once each to warm up, then in turns, the order alternating."""
    left()
    right()
    ratios: list[float] = []
    for index in range(rounds):
        if index % 2 == 0:
            above, below = left(), right()
        else:
            below, above = right(), left()
        ratios.append(above / below)
    return summary(ratios)


def summary(values: Sequence[float]) -> Measurement:
    """Median and spread."""
    return Measurement(statistics.median(values), max(values) - min(values))
