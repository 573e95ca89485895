# SPDX-License-Identifier: Apache-2.0
"""Finds the failed assertion that ended a simulator in what it printed."""

from __future__ import annotations

import re
from pathlib import Path

from driver.errors import AssertionFailed

_HALF_PERIOD_PS = 1000
"""As in tb/sim/core/simulation.h: the first rising edge is at the end of the first half."""
_TAIL_BYTES = 1 << 16
_FAILED = re.compile(
    r"\[(?P<ps>\d+)\] %Error: (?P<file>\S+?):(?P<line>\d+): "
    r"Assertion failed in (?P<scope>[\w.\[\]]+):? ?(?P<message>.*)"
)


def failed_assertion(log: Path, start: int = 0) -> AssertionFailed | None:
    """The first failed assertion that `log` tells of from byte `start` on; None without one."""
    try:
        with log.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(start, size - _TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return None
    found = _FAILED.search(text)
    if found is None:
        return None
    cycle = (int(found["ps"]) // _HALF_PERIOD_PS + 1) // 2
    message = found["message"].strip() or "no message"
    place = (found["file"], int(found["line"]))
    return AssertionFailed(place, found["scope"], message, cycle, str(log))
