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

Ranks = Sequence[float]
"""Of each command; the smallest of the commands that could start at the same time goes first."""
_WARMTH = 1000
"""An order may be worse than the one before it by this part of the queue's cycles, in the first
step of a search."""


@dataclass(frozen=True)
class Schedule:
    """An order of commands, by their numbers, and the cycle in which the last one ends."""

    order: tuple[int, ...]
    cycles: int


def scheduled(
    commands: Sequence[AnyCommand],
    hw: HwConfig,
    parts: Sequence[int] | None = None,
    steps: int = 0,
) -> Schedule:
    """The best of the orders that are tried; the given one where none is shorter.

    `parts`: for each command, which part of a cut command it is, 0 where it is whole. `steps`: how
    many orders are tried in a search besides, the same ones every time.
    """
    queue = _Queue(commands, hw)
    given = queue.run(range(len(commands)))
    tails = queue.tails()
    parts = parts or [0] * len(commands)
    keys: list[Callable[[int], tuple[int, ...]]] = [
        lambda at: (-tails[at], at),
        lambda at: (parts[at], -tails[at], at),
        lambda at: (parts[at], at),
    ]
    ranked = [_ranks(sorted(range(len(commands)), key=key)) for key in keys]
    found = [(queue.sorted_by(ranks), ranks) for ranks in ranked]
    best, ranks = min(found, key=lambda pair: pair[0].cycles)
    if len(commands) > 1:
        best = _searched(queue, best, ranks, steps)
    return min(given, best, key=lambda schedule: schedule.cycles)


def _ranks(order: Sequence[int]) -> list[float]:
    ranks = [0.0] * len(order)
    for rank, number in enumerate(order):
        ranks[number] = rank
    return ranks


def _searched(queue: _Queue, first: Schedule, ranks: Ranks, steps: int) -> Schedule:
    """The best order that is found in so many steps from another one.

    A step changes a few ranks. It may lead to a worse order, in the beginning to a much worse one
    (threshold accepting): next to most orders is none that is better at once.
    """
    rng = random.Random(0)  # noqa: S311 ranks, no secrets
    best = here = first
    for step in range(steps):
        tried = list(ranks)
        for _ in range(rng.choice((1, 1, 2, 4))):
            one, other = rng.sample(range(len(tried)), 2)
            if rng.random() < 0.5:
                tried[one], tried[other] = tried[other], tried[one]
            else:
                tried[one] = tried[other] + rng.choice((-0.5, 0.5))
        found = queue.sorted_by(tried)
        # In integers: the same on every machine.
        slack = first.cycles * (steps - step) ** 3 // (_WARMTH * steps**3)
        if found.cycles < here.cycles + slack:
            here, ranks = found, tried
            best = min(best, here, key=lambda schedule: schedule.cycles)
    return best


class _Queue:
    """Commands with what each must come behind."""

    def __init__(self, commands: Sequence[AnyCommand], hw: HwConfig) -> None:
        self._timings: list[Timing] = [timing_of(command, hw) for command in commands]
        self._access: list[Access] = [access_of(command) for command in commands]
        self._before: list[list[int]] = []
        """Earlier commands that a command must stay behind."""
        self._after: list[list[int]] = [[] for _ in commands]
        self._delaying: list[list[int]] = []
        """Commands, earlier or later, beside which a command does not run."""
        self._barriers = frozenset(at for at, one in enumerate(self._access) if one.is_barrier)
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
        self._delaying = [
            [one for one in sorted(others) if self._access[one].delays(self._access[number])]
            for number, others in enumerate(near)
        ]

    def tails(self) -> list[int]:
        """For each command, cycles from its start to the last end, if engines were never busy."""
        tails = [timing.cycles for timing in self._timings]
        for number in reversed(range(len(tails))):
            tails[number] += max((tails[after] for after in self._after[number]), default=0)
        return tails

    def run(self, order: Sequence[int]) -> Schedule:
        """The given order, as the device runs it."""
        clock = DeviceClock(self._timings, self._barriers, self._delaying)
        for number in order:
            clock.start(number)
        return Schedule(tuple(order), clock.end)

    def sorted_by(self, ranks: Ranks) -> Schedule:
        """Always the command that can start first; of several the one of the smallest rank."""
        clock = DeviceClock(self._timings, self._barriers, self._delaying)
        waits = [len(before) for before in self._before]
        ready = {number for number, count in enumerate(waits) if not count}
        order = []
        while ready:
            number = min(ready, key=lambda at: (clock.first_start(at), ranks[at], at))
            clock.start(number)
            ready.remove(number)
            order.append(number)
            for after in self._after[number]:
                waits[after] -= 1
                if not waits[after]:
                    ready.add(after)
        return Schedule(tuple(order), clock.end)
