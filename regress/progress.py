# SPDX-License-Identifier: Apache-2.0
"""Shows how far a run is: a bar with the time left on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from types import TracebackType

from rich import progress as bars
from rich.console import Console

from driver.results import OpRow
from regress.console import print_line

_LINE_EVERY_S = 15.0


class ProgressBar:
    """Follows one run on `console`; enter it around the run."""

    def __init__(self, console: Console, title: str, noun: str = "ops") -> None:
        """`noun`: what is counted."""
        self._console = console
        self._noun = noun
        self._title = title
        self._total: int | None = None
        self._done = 0
        self._failed = 0
        self._start = self._last = self._ended = time.monotonic()
        self._bar: bars.Progress | None = None
        self._task = bars.TaskID(0)

    def __enter__(self) -> ProgressBar:
        self._start = self._last = self._ended = time.monotonic()
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
            self._task = self._bar.add_task(self._title, total=None, left="")
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def plan(self, ops: int) -> None:
        """So many ops will run."""
        self._total = ops
        self._show()

    def op(self, row: OpRow) -> None:
        """An op is done."""
        if row.status == "fail":
            self._failed += 1
            self._print(f"op {row.index} {row.op} {row.module}: fail, blame {row.blame}")
        self.done()

    def done(self) -> None:
        """One more of those planned is done."""
        self._done += 1
        self._ended = time.monotonic()
        self._show()

    def note(self, text: str) -> None:
        """A line for the reader that stays. What a run says before its first op has ended is of
        what it builds for all of them, whose time is not that of an op."""
        if not self._done:
            self._start = time.monotonic()
        self._print(text)

    def tick(self) -> None:
        """Nothing has happened for a moment."""
        self._show()

    def left(self) -> str:
        """Time left, from the pace so far; empty while there is no telling. It does not rise while
        an op runs: one that takes longer than the others counts as nearly done."""
        if not self._total or not 0 < self._done < self._total:
            return ""
        pace = (self._ended - self._start) / self._done
        others = max(self._total - self._done - 1, 0)
        of_this = max(pace - (time.monotonic() - self._ended), 0)
        seconds = round(pace * others + of_this)
        if not others and not of_this:
            return "the last takes longer than the others"
        return f"{seconds // 60}:{seconds % 60:02} left"

    def _show(self) -> None:
        failed = f", {self._failed} failed" if self._failed else ""
        if self._bar is not None:
            self._bar.update(
                self._task,
                total=self._total,
                completed=self._done,
                left=f"{self.left()}{failed}",
            )
            return
        now = time.monotonic()
        if now - self._last >= _LINE_EVERY_S:
            self._last = now
            total = "?" if self._total is None else self._total
            left = f", {self.left()}" if self.left() else ""
            self._print(f"{self._title}: {self._done}/{total} {self._noun}{failed}{left}")

    def _print(self, text: str) -> None:
        print_line(self._console, text)
