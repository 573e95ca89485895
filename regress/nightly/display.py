# SPDX-License-Identifier: Apache-2.0
"""How far a plan is: a bar with the time left on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterable

from rich import progress as bars
from rich.console import Console

from regress.console import print_line
from regress.nightly.estimate import Seconds
from regress.results.model import Attempt, PlannedJob

_LINE_EVERY_S = 15.0


class PlanDisplay:
    """Follows one plan on `console`; enter it around the runs."""

    def __init__(
        self,
        console: Console,
        title: str,
        items: Iterable[PlannedJob],
        slots: int,
        expected: Seconds,
    ) -> None:
        self._console = console
        self._title = title
        self._left = {item.id: expected(item) for item in items}
        self._started: dict[str, float] = {}
        self._total = len(self._left)
        self._slots = slots
        self._red = 0
        self._took: list[tuple[float | None, float]] = []  # expected, real
        self._last = time.monotonic()
        self._bar: bars.Progress | None = None
        self._task = bars.TaskID(0)

    def __enter__(self) -> PlanDisplay:
        if self._console.is_terminal:
            self._bar = bars.Progress(
                bars.SpinnerColumn(),
                bars.TextColumn("{task.description}", markup=False),
                bars.BarColumn(bar_width=24),
                bars.MofNCompleteColumn(),
                bars.TextColumn("{task.fields[left]}"),
                console=self._console,
                transient=True,
            )
            self._task = self._bar.add_task(self._title, total=self._total, left="")
            self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def started(self, item: PlannedJob) -> None:
        """A job has been given to the pool."""
        self._started[item.id] = time.monotonic()
        self._show()

    def done(self, item: PlannedJob, attempt: Attempt) -> None:
        """An item has ended."""
        self._took.append((self._left.pop(item.id, None), attempt.seconds))
        if attempt.red:
            self._red += 1
            self.note(f"{attempt.status.value:7} {item.label}: {attempt.reason} [{attempt.id}]")
        self._show()

    def tick(self) -> None:
        """Nothing has happened for a moment."""
        self._show()

    def note(self, text: str) -> None:
        """A line for the reader that stays."""
        print_line(self._console, text)

    def left(self) -> str:
        """Time left: what is expected of the items, at the pace of those that are done; their mean
        where nothing is known. A job that takes longer counts as nearly done."""
        if not self._took or not self._left:
            return ""
        mean = sum(real for _, real in self._took) / len(self._took)
        known = [(usual, real) for usual, real in self._took if usual]
        usual_s = sum(usual for usual, _ in known)
        pace = sum(real for _, real in known) / usual_s if usual_s else 1.0
        rests = [
            self._rest_s(item_id, mean if usual is None else usual * pace)
            for item_id, usual in self._left.items()
        ]
        # No job is done by two slots: the longest of those left is a bound of its own.
        rest = round(max(sum(rests) / max(self._slots, 1), *rests))
        if not rest:
            return "longer than expected"
        minutes, seconds = divmod(rest, 60)
        hours, minutes = divmod(minutes, 60)
        return f"{f'{hours}:{minutes:02}' if hours else minutes}:{seconds:02} left"

    def _rest_s(self, item_id: str, whole_s: float) -> float:
        started = self._started.get(item_id)
        if started is None:
            return whole_s
        return max(whole_s - (time.monotonic() - started), 0.0)

    def _show(self) -> None:
        words = [self.left(), f"{self._red} red" if self._red else ""]
        said = ", ".join(filter(None, words))
        done = self._total - len(self._left)
        if self._bar is not None:
            self._bar.update(self._task, completed=done, left=said)
            return
        now = time.monotonic()
        if now - self._last >= _LINE_EVERY_S:
            self._last = now
            self.note(f"{self._title}: {done}/{self._total} jobs" + (f", {said}" if said else ""))
