# SPDX-License-Identifier: Apache-2.0
"""The order of a queue's commands in which the engines wait least, by an estimate.

The device starts commands in the order of the queue. A command that waits for an operand keeps all
behind it from their engines, so independent ones go before it. Commands that share a byte, one of
them writing, keep their order: the bits in memory are the same by construction.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from driver.compile.clock import DeviceClock
from driver.compile.footprints import Access, access_of
from driver.compile.passes import AnyCommand
from driver.compile.timing import Timing, timing_of
from driver.config import HwConfig
from driver.runtime.buffer import Buffer

Rank = Callable[[int], tuple[int, ...]]
"""The smallest of the commands that could start at the same time goes first."""
_SPREADS = (0.02, 0.1, 0.3)
"""Of random ranks, as parts of a tail."""


@dataclass(frozen=True)
class Schedule:
    """An order of commands, by their numbers, and the cycle in which the last one ends."""

    order: tuple[int, ...]
    cycles: int


def scheduled(
    commands: Sequence[AnyCommand],
    hw: HwConfig,
    parts: Sequence[int] | None = None,
    tries: int = 0,
) -> Schedule:
    """The best of the orders that are tried; the given one where none is shorter.

    `parts`: for each command, which part of a cut command it is, 0 where it is whole. `tries`: how
    many orders of random ranks are tried besides, the same ones every time.
    """
    queue = _Queue(commands, hw)
    parts = parts or [0] * len(commands)
    given = queue.run(range(len(commands)))
    tails = queue.tails()
    ranks: list[Rank] = [
        lambda at: (-tails[at], at),
        lambda at: (parts[at], -tails[at], at),
        lambda at: (parts[at], at),
    ]
    ranks += _random_ranks(parts, tails, tries)
    found = [given, *(queue.sorted_by(rank) for rank in ranks)]
    return min(found, key=lambda schedule: schedule.cycles)


def _random_ranks(parts: Sequence[int], tails: Sequence[int], tries: int) -> list[Rank]:
    """By tails that are made longer or shorter; by parts first in every second one."""
    rng = random.Random(0)  # noqa: S311 ranks, no secrets
    ranks: list[Rank] = []
    for number in range(tries):
        spread = _SPREADS[number % len(_SPREADS)]
        keys = [
            (part if number % 2 else 0, -round(tail * rng.uniform(1 - spread, 1 + spread)), at)
            for at, (part, tail) in enumerate(zip(parts, tails, strict=True))
        ]
        ranks.append(keys.__getitem__)
    return ranks


class _Queue:
    """Commands with what each must come behind."""

    def __init__(self, commands: Sequence[AnyCommand], hw: HwConfig) -> None:
        self._timings: list[Timing] = [timing_of(command, hw) for command in commands]
        self._access: list[Access] = [access_of(command) for command in commands]
        self._before: list[list[int]] = []
        """Earlier commands that a command must stay behind."""
        self._after: list[list[int]] = [[] for _ in commands]
        self._near: list[list[int]] = []
        """Commands, earlier or later, that share a buffer with one."""
        self._connect()

    def _connect(self) -> None:
        users: dict[Buffer, list[int]] = {}
        barriers: list[int] = []
        near: list[set[int]] = []
        for number, access in enumerate(self._access):
            others = {one for buffer in access.buffers for one in users.get(buffer, ())}
            near.append(others)
            earlier = range(number) if access.is_barrier else sorted(others | set(barriers))
            found = [one for one in earlier if self._access[one].before(access)]
            self._before.append(found)
            for one in found:
                self._after[one].append(number)
            for buffer in access.buffers:
                users.setdefault(buffer, []).append(number)
            if access.is_barrier:
                barriers.append(number)
        for number, others in enumerate(near):
            for one in others:
                near[one].add(number)
        self._near = [sorted(others) for others in near]

    def tails(self) -> list[int]:
        """For each command, cycles from its start to the last end, if engines were never busy."""
        tails = [timing.cycles for timing in self._timings]
        for number in reversed(range(len(tails))):
            tails[number] += max((tails[after] for after in self._after[number]), default=0)
        return tails

    def run(self, order: Sequence[int]) -> Schedule:
        """The given order, as the device runs it."""
        clock = DeviceClock(self._timings, self._access, self._near)
        for number in order:
            clock.start(number)
        return Schedule(tuple(order), clock.end)

    def sorted_by(self, rank: Rank) -> Schedule:
        """Always the command that can start first; of several the one of the smallest rank."""
        clock = DeviceClock(self._timings, self._access, self._near)
        waits = [len(before) for before in self._before]
        ready = {number for number, count in enumerate(waits) if not count}
        order = []
        while ready:
            number = min(ready, key=lambda at: (clock.first_start(at), rank(at)))
            clock.start(number)
            ready.remove(number)
            order.append(number)
            for after in self._after[number]:
                waits[after] -= 1
                if not waits[after]:
                    ready.add(after)
        return Schedule(tuple(order), clock.end)
