# SPDX-License-Identifier: Apache-2.0
"""Long sums part by part: fewer roundings on each element's way than in one chain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from driver.runtime.views import TensorView

LONGEST_SUM, _PART = 8192, 1024
"""Elements that one chain adds up, and those of a part where there are more."""


def part_count(size: int) -> int:
    """How many parts a dimension of that size has."""
    return -(-size // _PART)


def in_parts(views: Sequence[TensorView]) -> Iterator[tuple[int, list[TensorView]]]:
    """The innermost dimension, alike in all views, as two, [parts, elements]: those that are whole,
    then what is left; each with the number of its first part."""
    whole, rest = divmod(views[0].sizes[-1], _PART)
    for first, count, size in ((0, whole, _PART), (whole, 1, rest)):
        if count and size:
            yield (
                first,
                [x.sliced(-1, first * _PART, count * size).split(-1, (count, size)) for x in views],
            )
