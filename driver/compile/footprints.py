# SPDX-License-Identifier: Apache-2.0
"""The bytes that commands use: which of two keep their order, and which the device lets overlap.

Two answers about two operands: whether they may share a byte, which decides the order, and whether
their ranges from first to last byte meet, which is what the hardware compares (docs/isa.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import gcd

from driver.compile.passes import AnyCommand, OtherCommand, VectorPass
from driver.isa import DTYPE_BYTES, Opcode
from driver.runtime.buffer import Buffer
from driver.runtime.views import TensorView

_BY_BUFFERS = (Opcode.MATMUL, Opcode.FILL, Opcode.COPY)
"""Commands of which it is enough to know the buffers: they neither fail by an index nor load."""


@dataclass(frozen=True)
class Footprint:
    """Bytes from `start` to `stop` of a buffer, and where gaps between them are certain."""

    buffer: Buffer
    start: int
    stop: int
    runs: tuple[tuple[int, int], ...]
    """(width, grid): all bytes are in runs of such a width at `start` + multiples of the grid; in a
    single run where it is 0. From the narrowest runs to the widest."""

    def meets(self, other: Footprint) -> bool:
        """Whether the ranges have a byte in common: the device then keeps the order."""
        return self.buffer is other.buffer and self.start < other.stop and other.start < self.stop

    def overlaps(self, other: Footprint) -> bool:
        """Whether any byte may be in both. False is certain."""
        if not self.meets(other):
            return False
        pairs = product(self.runs, other.runs)
        return all(_may_meet(other.start - self.start, *pair) for pair in pairs)


def _may_meet(distance: int, first: tuple[int, int], second: tuple[int, int]) -> bool:
    """Whether runs of the one may have a byte in common with runs of the other."""
    grid = gcd(first[1], second[1])
    if not grid:
        return True
    apart = distance % grid
    return apart < first[0] or grid - apart < second[0]


def footprint(view: TensorView) -> Footprint:
    """The bytes of a view."""
    width = DTYPE_BYTES[view.dtype]
    walk = zip(view.sizes, view.strides, strict=True)
    steps = sorted((stride * width, size) for size, stride in walk if size > 1 and stride)
    runs = [(width, gcd(*(step for step, _ in steps)))]
    while steps:
        step, size = steps.pop(0)
        width += (size - 1) * step
        runs.append((width, gcd(*(outer for outer, _ in steps))))
    return Footprint(view.buffer, view.offset_bytes, view.offset_bytes + width, tuple(runs))


def whole(buffer: Buffer) -> Footprint:
    """All bytes of a buffer."""
    return Footprint(buffer, 0, buffer.size_bytes, ((buffer.size_bytes, 0),))


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
        return self._conflicts_with(later, Footprint.overlaps)

    def delays(self, later: Access) -> bool:
        """Whether the device starts a later command only when this one has ended."""
        return self._conflicts_with(later, Footprint.meets)

    def _conflicts_with(
        self, later: Access, shares: Callable[[Footprint, Footprint], bool]
    ) -> bool:
        """Whether one of the two is a barrier, or writes what the other one `shares` with it."""
        if self.is_barrier or later.is_barrier:
            return True
        if self.buffers.isdisjoint(later.buffers):
            return False
        return any(shares(first, second) for first, second in _conflicts(self, later))


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
