# SPDX-License-Identifier: Apache-2.0
"""Feeds a pool with jobs, most valuable first, until all are done, time is up or the user stops it.

Every attempt is recorded the moment it arrives. Knows no process, database or network.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from regress.nightly.estimate import Seconds
from regress.nightly.job import JobSpec
from regress.nightly.pool import Pool
from regress.results.model import Attempt, PlannedJob

_POLL_S = 0.2


@dataclass
class RunControl:
    """What the user wants: go on, drain (start nothing more), or stop (end what runs)."""

    drain: bool = False
    stop: bool = False

    def interrupt(self) -> None:
        """Once drains, twice stops."""
        self.stop = self.drain
        self.drain = True

    def end(self) -> None:
        """Stop at once."""
        self.drain = self.stop = True


@contextlib.contextmanager
def interruptible(control: RunControl, note: Callable[[str], None]) -> Iterator[None]:
    """Ctrl-C drains, a second one stops; SIGTERM and SIGHUP stop. Only in the main thread."""

    def interrupt(number: int, _frame: object) -> None:
        if number == signal.SIGINT:
            control.interrupt()
        else:
            control.end()
        note("stopping" if control.stop else "no new jobs; Ctrl-C again ends those that run")

    assert threading.current_thread() is threading.main_thread()
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    former = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


class SchedulerDisplay(Protocol):
    """Receives the progress of a run of jobs."""

    def started(self, item: PlannedJob) -> None:
        """A job has been given to the pool."""
        ...

    def done(self, item: PlannedJob, attempt: Attempt) -> None:
        """An item has ended."""
        ...

    def tick(self) -> None:
        """Nothing has happened for a moment."""
        ...


@dataclass
class TimeBudget:
    """Time for the whole run, by a clock that never jumps. An item whose usual duration does not
    fit into what is left is not started."""

    seconds: float
    expected: Seconds
    """Of an item; one of which nothing is known is started."""
    clock: Callable[[], float] = time.monotonic
    _start: float = field(init=False)

    def __post_init__(self) -> None:
        self._start = self.clock()

    @property
    def left(self) -> float:
        """Seconds; negative when it is overdrawn."""
        return self.seconds - (self.clock() - self._start)

    def affords(self, item: PlannedJob) -> bool:
        """Whether there is time left, and enough for this item."""
        left = self.left
        return left > 0 and (self.expected(item) or 0.0) <= left


@dataclass(frozen=True)
class SchedulerCallbacks:
    """What the scheduler calls."""

    start: Callable[[PlannedJob], JobSpec]
    """Make the job of an item."""
    record: Callable[[Attempt], None]
    """Store an attempt: durable when it returns."""
    unaffordable: Callable[[PlannedJob], Attempt]
    """The attempt of an item that the budget leaves out."""


@dataclass
class Scheduler:
    """Drives one pool."""

    pool: Pool
    handlers: SchedulerCallbacks
    display: SchedulerDisplay
    control: RunControl
    budget: TimeBudget | None = None
    _running: dict[str, PlannedJob] = field(default_factory=dict)

    def run(self, items: Iterable[PlannedJob]) -> None:
        """Run the items in their order; closes the pool. Returns when nothing runs any more: all
        done, or stopped. What `record` raises ends everything that runs, and is raised."""
        waiting = deque(items)
        try:
            while True:
                if self.control.stop:
                    self.pool.cancel()
                while waiting and not self.control.drain and len(self._running) < self.pool.slots:
                    self._start(waiting.popleft())
                if not self._running and (self.control.drain or not waiting):
                    return
                self._take(self.pool.next(_POLL_S))
        finally:
            self.pool.close()

    def _start(self, item: PlannedJob) -> None:
        if self.budget is not None and not self.budget.affords(item):
            attempt = self.handlers.unaffordable(item)
            self.handlers.record(attempt)
            self.display.done(item, attempt)
            return
        self.pool.submit(self.handlers.start(item))
        self._running[item.id] = item
        self.display.started(item)

    def _take(self, attempt: Attempt | None) -> None:
        if attempt is None:
            self.display.tick()
            return
        self.handlers.record(attempt)
        self.display.done(self._running.pop(attempt.item_id), attempt)
