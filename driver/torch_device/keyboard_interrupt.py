# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C between two steps of Python would leave a queue or an allocator half changed. It waits for
the end of the op that is being queued, or comes while the program waits for the device.

Only Python's own handler is replaced, when the first device is opened by the main thread.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from functools import wraps
from types import FrameType
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")


class _DeferredInterrupt:
    """Of the main thread, in which alone Python runs handlers."""

    def __init__(self) -> None:
        self.depth = 0
        """How many calls are under way that an interrupt must not cut short."""
        self.pending = False
        self.thread = threading.main_thread().ident

    def handle(self, number: int, frame: FrameType | None) -> None:
        """In the place of signal.default_int_handler."""
        if self.depth:
            self.pending = True
        else:
            signal.default_int_handler(number, frame)


_DEFERRED = _DeferredInterrupt()


def install() -> None:
    """Any number of calls is fine. A program's own handler stays."""
    if (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    ):
        signal.signal(signal.SIGINT, _DEFERRED.handle)


def raise_pending() -> None:
    """KeyboardInterrupt if one waits. To be called where all is in order."""
    if _DEFERRED.pending and threading.get_ident() == _DEFERRED.thread:
        _DEFERRED.pending = False
        raise KeyboardInterrupt


def defer_interrupt(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """The function, at whose end alone an interrupt is raised."""

    @wraps(function)
    def uninterrupted(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        if threading.get_ident() != _DEFERRED.thread:
            return function(*args, **kwargs)
        _DEFERRED.depth += 1
        try:
            return function(*args, **kwargs)
        finally:
            _DEFERRED.depth -= 1
            if _DEFERRED.pending and not _DEFERRED.depth:
                raise_pending()

    return uninterrupted
