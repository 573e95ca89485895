# SPDX-License-Identifier: Apache-2.0
"""Finds in what a simulator printed how the RTL ended it."""

from __future__ import annotations

import re
from pathlib import Path

from driver.errors import AssertionFailed, NeverSettles

_HALF_PERIOD_PS = 1000
"""As in tb/sim/core/simulation.h: the first rising edge is at the end of the first half."""
_TAIL_BYTES = 1 << 16
_FAILED = re.compile(
    r"\[(?P<ps>\d+)\] %Error: (?P<file>\S+?):(?P<line>\d+): "
    r"Assertion failed in (?P<scope>[\w.\[\]]+):? ?(?P<message>.*)"
)
_LOOP = "%Error-DIDNOTCONVERGE: "


def rtl_error(log: Path, start: int = 0) -> AssertionFailed | NeverSettles | None:
    """The first failed assertion that `log` tells of from byte `start` on, or the loop that it was
    given up at; None without either."""
    try:
        with log.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(start, size - _TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return None
    found = _FAILED.search(text)
    if found is None:
        return NeverSettles(str(log)) if _LOOP in text else None
    cycle = (int(found["ps"]) // _HALF_PERIOD_PS + 1) // 2
    message = found["message"].strip() or "no message"
    place = (found["file"], int(found["line"]))
    return AssertionFailed(place, found["scope"], message, cycle, str(log))
