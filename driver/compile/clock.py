# SPDX-License-Identifier: Apache-2.0
"""The device as the order of commands sees it: starts in order, one command per engine, one bus.

Where engines together want more than a beat per cycle, the operands that they read take turns: no
operand gets more than another one that wants more. Writes of one engine pass those of another only
between bursts: the last ones of a product come behind a pass that computes long for each beat.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from math import inf

from driver.compile.timing import Timing

_ISSUE_CYCLES = 16
"""From one command's start to the next one's, when both are ready."""
_NOTHING = 1e-6
_IN_FLIGHT = 8
"""Commands from the oldest one that has not ended on: a command behind them does not start."""


class DeviceClock:
    """Runs commands in the order in which they are given; times are estimates."""

    def __init__(
        self, timings: Sequence[Timing], barriers: Set[int], delaying: Sequence[Sequence[int]]
    ) -> None:
        """`barriers`: commands that start alone. `delaying`: for each command, those that it never
        runs beside."""
        self._timings, self._barriers, self._delaying = timings, barriers, delaying
        self._now = 0.0
        self._next = 0.0
        """The first cycle in which the next command can start."""
        self._left: dict[int, float] = {}
        """The cycles that a running command would still take alone."""
        self._ends: dict[int, float] = {}
        """Of all that has started, if nothing else started."""
        self._order: list[int] = []
        """All that has started."""
        self._engines: dict[str, int] = {}
        """The last command of each engine."""

    @property
    def end(self) -> int:
        """When the last command ends that has started."""
        return round(max(self._ends.values(), default=0))

    def first_start(self, number: int) -> float:
        """The first cycle in which a command can start, if it is the next one."""
        start = self._next
        last = self._engines.get(self._timings[number].engine)
        if last is not None:
            start = max(start, self._ends[last])
        behind = self._order[: 1 - _IN_FLIGHT]
        if behind and not self._left.keys().isdisjoint(behind):
            start = max(start, *(self._ends[at] for at in behind))
        if number in self._barriers:
            return max(start, *self._ends.values(), 0)
        for other in self._delaying[number]:
            start = max(start, self._ends.get(other, 0))
        return start

    def start(self, number: int) -> None:
        """The next command of the queue."""
        start = self.first_start(number)
        self._advance(start)
        timing = self._timings[number]
        self._left[number] = timing.cycles
        self._order.append(number)
        self._engines[timing.engine] = number
        self._project()
        self._next = self._ends[number] if number in self._barriers else start + _ISSUE_CYCLES

    def _advance(self, until: float) -> None:
        """Let what runs go on until a cycle."""
        self._ends |= self._run(self._left, until)
        self._now = until

    def _project(self) -> None:
        """The ends of all that runs."""
        self._ends |= self._run(dict(self._left), inf)

    def _run(self, left: dict[int, float], until: float) -> dict[int, float]:
        """Let commands run until a cycle, from now on; the ends of those that have ended are given,
        and `left` has the others."""
        ends: dict[int, float] = {}
        now = self._now
        while True:
            is_held = any(self._timings[at].holds_writes for at in left)
            done = [at for at in left if not left[at] and not (is_held and self._waits(at))]
            for at in done:
                ends[at] = now
                del left[at]
            if done:
                continue
            if not left or now >= until:
                return ends
            active = {at: more for at, more in left.items() if more}
            slow = self._slowdowns(active)
            step = min(until - now, *(more * slow[at] for at, more in active.items()))
            now += step
            for at, more in active.items():
                rest = more - step / slow[at]
                left[at] = rest if rest > _NOTHING else 0.0

    def _waits(self, number: int) -> bool:
        return self._timings[number].engine == "matrix"

    def _slowdowns(self, running: Iterable[int]) -> dict[int, float]:
        return slowdowns(
            {at: (self._timings[at].bus_share, self._timings[at].operands) for at in running}
        )


def slowdowns(wanted: Mapping[int, tuple[float, int]]) -> dict[int, float]:
    """How many times as long each command takes, when all want these shares of the bus for so many
    operands."""
    found: dict[int, float] = {}
    left, operands = 1.0, sum(count for _, count in wanted.values())
    by_operand = sorted((share / count, number) for number, (share, count) in wanted.items())
    for each, number in by_operand:
        share, count = wanted[number]
        got = min(each, left / operands) * count
        found[number] = share / got if got else 1.0
        left, operands = left - got, operands - count
    return found
