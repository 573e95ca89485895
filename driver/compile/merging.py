# SPDX-License-Identifier: Apache-2.0
"""Passes that run as one, and whether another one may join them.

A FusedGroup keeps its passes on common dimensions, so that it can be taken apart and composed anew
with more of them. Nothing here changes the order of commands; driver.compile.fusing does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from driver.compile.aligning import Axis, along, common_axes, merged_dims, same_axes, with_row
from driver.compile.composing import composed
from driver.compile.passes import VectorPass
from driver.compile.tracing import NotFusable, trace
from driver.isa import MAX_RANK
from driver.isa.micro import Reduce
from driver.runtime.buffer import Buffer
from driver.runtime.views import TensorView

IsReadLater = Callable[[TensorView], bool]
_MOST_PASSES = 32
"""In one group: what fits 255 instructions rarely has more."""


@dataclass(frozen=True)
class FusedGroup:
    """Passes in their order, all operands on the same dimensions, and the one pass for them."""

    passes: tuple[VectorPass, ...]
    """Only the last one may reduce."""
    fused: VectorPass
    has_row: bool
    """Whether the innermost dimension means something to one of the passes."""

    @property
    def reads(self) -> frozenset[Buffer]:
        """Buffers that its passes read, those included that the one pass need not."""
        return self.fused.reads.union(*(one.reads for one in self.passes))

    @property
    def writes(self) -> frozenset[Buffer]:
        """Buffers that its passes write: with more passes it may store what it leaves out now."""
        return self.fused.writes.union(*(one.writes for one in self.passes))

    @property
    def reduces(self) -> bool:
        """Whether it ends in a reduction."""
        return self.passes[-1].program.reduce is not Reduce.NONE


def alone(one: VectorPass) -> FusedGroup:
    """A group of one pass."""
    return FusedGroup((one,), one, one.program.positional)


def merged(
    first: FusedGroup, second: FusedGroup, is_read_later: IsReadLater
) -> Iterator[FusedGroup]:
    """The groups that do what the first and then the second do, by each way to align them."""
    if first.reduces or len(first.passes) + len(second.passes) > _MOST_PASSES:
        return
    tried: list[list[Axis]] = []
    for axes in _alignments(first, second):
        if axes in tried:
            continue
        tried.append(axes)
        try:
            yield _merged(first, second, axes, is_read_later)
        except NotFusable:
            continue


def _alignments(first: FusedGroup, second: FusedGroup) -> Iterator[list[Axis]]:
    """Common walks: over what the second reads of the first's results, then over what both read."""
    results = [view for one in first.passes for view in one.results]
    for given, wanted in product(results, second.fused.sources):
        if given.buffer is wanted.buffer:
            yield from _aligned(given, wanted)
    for given, wanted in product(first.fused.sources, second.fused.sources):
        if given.buffer is wanted.buffer and given.offset_bytes == wanted.offset_bytes:
            if first.fused.sizes == second.fused.sizes:
                yield same_axes(first.fused.sizes)
            yield from _aligned(given, wanted)


def _aligned(given: TensorView, wanted: TensorView) -> Iterator[list[Axis]]:
    axes = common_axes(given, wanted)
    if axes is not None:
        yield axes


def _merged(
    first: FusedGroup, second: FusedGroup, axes: Sequence[Axis], is_read_later: IsReadLater
) -> FusedGroup:
    """NotFusable where the axes, or anything else, do not allow it."""
    rows = [len(group.fused.sizes) - 1 if group.has_row else None for group in (first, second)]
    split = with_row(axes, rows[0], rows[1])
    if split is None:
        raise NotFusable("rows of different dimensions")
    outer, row = split
    ordered = [*outer, *row]
    views = [
        along(view, ordered, second=group is second)
        for group in (first, second)
        for one in group.passes
        for view in (*one.sources, *one.results)
    ]
    has_row = first.has_row or second.has_row
    walked = merged_dims(views, len(outer), has_row=has_row)
    if walked is None or walked[0].rank > MAX_RANK:
        raise NotFusable("more dimensions than a descriptor has")
    rest = iter(walked)
    passes = tuple(_on_dims(one, rest) for one in (*first.passes, *second.passes))
    return FusedGroup(passes, fused_pass(passes, walked[0].sizes, is_read_later), has_row)


def _on_dims(one: VectorPass, views: Iterator[TensorView]) -> VectorPass:
    """The pass with the next views; a reduction's result has size 1 in the innermost dimension."""
    sources = tuple(next(views) for _ in one.sources)
    results = tuple(next(views) for _ in one.results)
    return VectorPass(one.program, sources, results, one.imms)


def fused_pass(
    passes: Sequence[VectorPass], sizes: Sequence[int], is_read_later: IsReadLater
) -> VectorPass:
    """The one pass for several on the same sizes. NotFusable when there is none."""
    flow = trace(passes, sizes, is_read_later)
    results = [view for _, view in flow.stored]
    if passes[-1].program.reduce is not Reduce.NONE:
        results = [view.sliced(-1, 0, 1) for view in results]
    return composed(passes, flow, results)
