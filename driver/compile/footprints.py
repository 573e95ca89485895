# SPDX-License-Identifier: Apache-2.0
"""The bytes that commands use: which of two keep their order, and which the device lets overlap.

Two answers about two operands: whether they may share a byte, which decides the order, and whether
their ranges from first to last byte meet, which is what the hardware compares (docs/isa.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import gcd

from driver.compile.passes import AnyCommand, OtherCommand, VectorPass
from driver.isa import DTYPE_BYTES, Opcode
from driver.runtime.buffer import Buffer
from driver.runtime.views import TensorView

_BY_BUFFERS = (Opcode.MATMUL, Opcode.FILL, Opcode.COPY)
"""Commands of which it is enough to know the buffers: they neither fail by an index nor load."""


@dataclass(frozen=True)
class Footprint:
    """Runs of `width` bytes at `start` + multiples of `grid`, the last of which ends at `stop`."""

    buffer: Buffer
    start: int
    stop: int
    width: int
    grid: int
    """0: a single run."""

    def meets(self, other: Footprint) -> bool:
        """Whether the ranges have a byte in common: the device then keeps the order."""
        return self.buffer is other.buffer and self.start < other.stop and other.start < self.stop

    def overlaps(self, other: Footprint) -> bool:
        """Whether any byte may be in both. False is certain."""
        if not self.meets(other):
            return False
        grid = gcd(self.grid, other.grid)
        if not grid:
            return True
        apart = (other.start - self.start) % grid
        return apart < self.width or grid - apart < other.width


def footprint(view: TensorView) -> Footprint:
    """The bytes of a view."""
    width = DTYPE_BYTES[view.dtype]
    walk = zip(view.sizes, view.strides, strict=True)
    steps = sorted((stride * width, size) for size, stride in walk if size > 1 and stride)
    while steps and steps[0][0] <= width:
        step, size = steps.pop(0)
        width += (size - 1) * step
    stop = view.offset_bytes + sum(step * (size - 1) for step, size in steps) + width
    grid = gcd(*(step for step, _ in steps))
    return Footprint(view.buffer, view.offset_bytes, stop, width, grid)


def whole(buffer: Buffer) -> Footprint:
    """All bytes of a buffer."""
    return Footprint(buffer, 0, buffer.size_bytes, buffer.size_bytes, 0)


@dataclass(frozen=True)
class Access:
    """What a command reads and writes."""

    reads: tuple[Footprint, ...]
    writes: tuple[Footprint, ...]
    is_barrier: bool = False
    """Whether nothing may change places with it."""

    @cached_property
    def buffers(self) -> frozenset[Buffer]:
        """All of them."""
        return frozenset(one.buffer for one in (*self.reads, *self.writes))

    def before(self, later: Access) -> bool:
        """Whether a later command must stay behind this one."""
        if self.is_barrier or later.is_barrier:
            return True
        if self.buffers.isdisjoint(later.buffers):
            return False
        return any(first.overlaps(second) for first, second in _conflicts(self, later))

    def delays(self, later: Access) -> bool:
        """Whether the device starts a later command only when this one has ended."""
        if self.is_barrier or later.is_barrier:
            return True
        if self.buffers.isdisjoint(later.buffers):
            return False
        return any(first.meets(second) for first, second in _conflicts(self, later))


def _conflicts(first: Access, second: Access) -> Iterable[tuple[Footprint, Footprint]]:
    for written in first.writes:
        for other in (*second.reads, *second.writes):
            yield written, other
    for read in first.reads:
        for other in second.writes:
            yield read, other


def access_of(command: AnyCommand) -> Access:
    """The bytes of a command; by whole buffers where it is known no better."""
    if not isinstance(command, OtherCommand):
        return _of_views(
            command.sources,
            command.results,
            isinstance(command, VectorPass) and bool(command.words),
        )
    if command.work is not None:
        return _of_views(command.work.sources, command.work.results, False)
    known = command.packet.opcode in _BY_BUFFERS
    reads, writes = (tuple(map(whole, buffers)) for buffers in (command.reads, command.writes))
    return Access(reads, writes, not known)


def _of_views(
    sources: Iterable[TensorView], results: Iterable[TensorView], is_barrier: bool
) -> Access:
    return Access(tuple(map(footprint, sources)), tuple(map(footprint, results)), is_barrier)
