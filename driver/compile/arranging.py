# SPDX-License-Identifier: Apache-2.0
"""Which products of a queue are cut, and in which order its commands go: what the estimate says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from driver.compile.cutting import PartedQueue, cut, uncut
from driver.compile.passes import AnyCommand, MatrixProduct, OtherCommand
from driver.compile.scheduling import Schedule, scheduled
from driver.config import HwConfig
from driver.runtime.buffer import Buffer

_MOST_COMMANDS = 256
"""Of longer queues no product is cut: each way to cut costs a look at all commands."""
_LAST_COLUMNS = (64, 128, 256)
"""Columns of a cut product's last part; what follows that part alone is not hidden."""
_LEAST_RATIO = 4
"""Columns of a product that is cut, to those of its last part."""
_MOST_PARTS = 4
_MOST_EQUAL = 8
_CUT_STEPS = 10
"""Orders that are tried for each way to cut."""
_STEPS, _ALL_STEPS = 5000, 500_000
"""Orders that are tried of the queue as it is cut, and commands in all of them, at most."""
_LEAST_GAIN = 500
"""Cycles by which a cut must shorten the queue, next to none or to one of no more parts: the
estimate is no better than that."""


def arranged(
    commands: Sequence[AnyCommand], temporaries: frozenset[Buffer], hw: HwConfig
) -> tuple[list[AnyCommand], tuple[Buffer, ...]]:
    """The commands as they go into the queue, and the temporaries that they need besides."""
    queue = uncut(commands)
    schedule = scheduled(queue.commands, hw, queue.parts)
    numbers = range(len(commands) if len(commands) <= _MOST_COMMANDS else 0)
    for number in reversed(numbers):  # a cut moves only what is behind it
        queue, schedule = _better(queue, schedule, number, temporaries, hw)
    count = len(queue.commands)
    if count <= _MOST_COMMANDS:
        steps = min(_STEPS, count**2, _ALL_STEPS // max(count, 1))
        schedule = scheduled(queue.commands, hw, queue.parts, steps)
    return [queue.commands[at] for at in schedule.order], queue.temporaries


def _better(
    queue: PartedQueue,
    schedule: Schedule,
    number: int,
    temporaries: frozenset[Buffer],
    hw: HwConfig,
) -> tuple[PartedQueue, Schedule]:
    """The queue with one product cut in the best way, or as it is."""
    command = queue.commands[number]
    work = command.work if isinstance(command, OtherCommand) else None
    best = (queue, schedule)
    if not isinstance(work, MatrixProduct):
        return best
    for widths in _ways(work.result.sizes[2]):
        found = cut(queue, number, widths, temporaries)
        if found is None:
            continue
        other = scheduled(found.commands, hw, found.parts, _CUT_STEPS)
        if other.cycles + _LEAST_GAIN < best[1].cycles:
            best = (found, other)
    return best


def _ways(columns: int) -> Iterator[list[int]]:
    """Parts that get smaller, few of them first: the next part hides what follows the one before.
    Then equal parts."""
    for parts in range(2, _MOST_PARTS + 1):
        for last in _LAST_COLUMNS:
            widths = [last << doubled for doubled in reversed(range(parts - 1))]
            rest = columns - sum(widths)
            if rest > 0 and columns >= _LEAST_RATIO * last:
                yield [rest, *widths]
    for last in _LAST_COLUMNS:
        if columns % last == 0 and 2 < columns // last <= _MOST_EQUAL:
            yield [last] * (columns // last)
