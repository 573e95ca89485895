# SPDX-License-Identifier: Apache-2.0
"""Which bytes the elements of an operand are, and when two operands share some."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

from driver.isa import DTYPE_BYTES
from driver.runtime.buffer import Buffer
from driver.runtime.views import TensorView


@dataclass(frozen=True)
class Place:
    """Element [i0, …] of an operand is `width` bytes at offset + Σ i·step of the buffer."""

    buffer: Buffer
    offset: int
    steps: tuple[int, ...]
    """Bytes; 0 in dimensions of size 1 as well as in repeated ones."""
    width: int

    def part(self, offset: int, width: int) -> Place:
        """Some bytes of every element."""
        return Place(self.buffer, self.offset + offset, self.steps, width)

    def end(self, sizes: Sequence[int]) -> int:
        """The byte of the buffer behind the last one."""
        spans = zip(sizes, self.steps, strict=True)
        return self.offset + sum((size - 1) * step for size, step in spans) + self.width


def place(view: TensorView, sizes: Sequence[int]) -> Place:
    """The view's elements in a walk over `sizes`: the view's own, or more where it repeats."""
    width = DTYPE_BYTES[view.dtype]
    walk = zip(view.sizes, view.strides, strict=True)
    steps = tuple(0 if size == 1 else stride * width for size, stride in walk)
    assert len(steps) == len(sizes)
    return Place(view.buffer, view.offset_bytes, steps, width)


def may_overlap(first: Place, second: Place, sizes: Sequence[int]) -> bool:
    """Whether any two elements, at any indices, may share a byte. False is certain."""
    if first.buffer is not second.buffer:
        return False
    if first.offset >= second.end(sizes) or second.offset >= first.end(sizes):
        return False
    grid = gcd(*first.steps, *second.steps)
    apart = (second.offset - first.offset) % grid if grid else 0
    return not (grid and apart >= first.width and grid - apart >= second.width)


def share_only_by_index(first: Place, second: Place, sizes: Sequence[int]) -> bool:
    """Whether elements of different indices are certain to have no byte in common."""
    if first.steps != second.steps:
        return False
    reach = max(first.offset + first.width, second.offset + second.width)
    reach -= min(first.offset, second.offset)
    walk = sorted((step, size) for step, size in zip(first.steps, sizes, strict=True) if size > 1)
    for step, size in walk:
        if step < reach:
            return False
        reach += step * (size - 1)
    return True
