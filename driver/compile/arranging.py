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
_LEAST_GAIN = 500
"""Cycles by which a cut must shorten the queue: the estimate is no better than that."""


def arranged(
    commands: Sequence[AnyCommand], temporaries: frozenset[Buffer], hw: HwConfig
) -> tuple[list[AnyCommand], tuple[Buffer, ...]]:
    """The commands as they go into the queue, and the temporaries that they need besides."""
    queue = uncut(commands)
    schedule = scheduled(queue.commands, hw, queue.parts)
    numbers = range(len(commands) if len(commands) <= _MOST_COMMANDS else 0)
    for number in reversed(numbers):  # a cut moves only what is behind it
        queue, schedule = _better(queue, schedule, number, temporaries, hw)
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
    least = schedule.cycles - _LEAST_GAIN
    for widths in _ways(work.result.sizes[2]):
        found = cut(queue, number, widths, temporaries)
        if found is None:
            continue
        other = scheduled(found.commands, hw, found.parts)
        if other.cycles < least:
            best, least = (found, other), other.cycles
    return best


def _ways(columns: int) -> Iterator[list[int]]:
    """Parts that get smaller: the next one hides what follows the one before."""
    for last in _LAST_COLUMNS:
        if columns < _LEAST_RATIO * last:
            break
        widths: list[int] = [last]
        while len(widths) < _MOST_PARTS and (rest := columns - sum(widths)) > 0:
            yield [rest, *widths]
            widths.insert(0, 2 * widths[0])
