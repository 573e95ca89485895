# SPDX-License-Identifier: Apache-2.0
"""What a build says while its user waits: at once, then every ten seconds."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

log = logging.getLogger(__name__)

_EVERY_S = 10.0
_FROM_SHARE = 0.05
"""Of the text to compile; before that there is no telling how long the rest takes."""


class BuildProgress:
    """One build of `label`. What it says goes to the log of this module."""

    def __init__(self, label: str, now: Callable[[], float] = time.monotonic) -> None:
        """`now` gives seconds."""
        self._label, self._now = label, now
        self._start = now()
        self._next: float | None = None
        self._compile_start = self._start

    def __call__(self, doing: str) -> None:
        """`doing` is what the build does now."""
        elapsed = self._now() - self._start
        if self._next is None:
            log.info("building %s: %s", self._label, doing)
        elif elapsed >= self._next:
            log.info("building %s: %s, %.0f s", self._label, doing, elapsed)
        else:
            return
        self._next = elapsed + _EVERY_S

    def compiled(self, done: int, total: int, share: float) -> None:
        """`done` of `total` files are compiled, `share` of their text; called first with none."""
        if not done:
            self._compile_start = self._now()
        left = ""
        if share >= _FROM_SHARE:
            seconds = round((self._now() - self._compile_start) * (1 - share) / share)
            left = f", {seconds // 60}:{seconds % 60:02} left"
        self(f"compiled {done} of {total} changed files{left}")
