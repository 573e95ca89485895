# SPDX-License-Identifier: Apache-2.0
"""When two failures are the same one."""

from __future__ import annotations

import re

from driver.results import Failure

_NORMAL: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"/\S+/"), ""),
    (re.compile(r"\b0x[0-9a-fA-F]+\b"), "HEX"),
    (re.compile(r"[-+]?\b\d+(?:\.\d+)?(?:e[-+]?\d+)?\b"), "N"),
    (re.compile(r"\b(?:nan|inf|-inf)\b"), "N"),
    (re.compile(r"\[N(?:, N)*\]"), "[N]"),
    (re.compile(r"\s+"), " "),
)
"""What differs between two meetings of one bug: paths, addresses, numbers, spaces."""
_SIGNATURE_LENGTH = 200


def normalised(text: str) -> str:
    """A message without what changes from one occurrence to the next."""
    for pattern, instead in _NORMAL:
        text = pattern.sub(instead, text)
    return text.strip()[:_SIGNATURE_LENGTH]


def kind_of(failure: Failure | None) -> str:
    """What two failures of one kind have in common: where no element is wrong, what is said."""
    return "" if failure is None or failure.tile is not None else normalised(failure.detail)
