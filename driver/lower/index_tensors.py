# SPDX-License-Identifier: Apache-2.0
"""Indexing by several tensors, integers or masks: index and index_put."""

from __future__ import annotations

from dataclasses import replace

from driver.lower.builder import ProgramBuilder
from driver.lower.compare import where
from driver.lower.convert import as_truth, as_type
from driver.lower.elementwise import TABLE as SUMS
from driver.lower.index import by_tensors, in_line, is_mask, mergeable, merged_at, take
from driver.lower.masks import chosen_places
from driver.lower.positions import along
from driver.lower.registry import LoweringTable
from driver.lower.scatter import scatter
from driver.runtime.views import TensorView

TABLE = LoweringTable()
Indices = tuple[TensorView | None, ...]


def _places(b: ProgramBuilder, indices: Indices, count: int) -> Indices:
    """The indices with masks as the places that they choose, along each of their dimensions."""
    found: list[TensorView | None] = []
    for index in indices:
        if index is not None and is_mask(index):
            found += chosen_places(b, index, count)
        else:
            found.append(index)
    return tuple(found)


def _first(indices: Indices) -> int:
    """The dimension of the result at which the indices' own dimensions begin."""
    return next(at for at, index in enumerate(indices) if index is not None)


def _inner_rank(indices: Indices) -> int:
    """How many dimensions the indices have together; a mask counts as one."""
    return max(1 if is_mask(index) else index.rank for index in indices if index is not None)


@TABLE.op("index.Tensor", "_unsafe_index.Tensor")
def index_tensors(b: ProgramBuilder, out: TensorView, self: TensorView, indices: Indices) -> None:
    """self[indices]"""
    if any(map(is_mask, indices)):
        indices = _places(b, indices, out.sizes[_first(indices) + _inner_rank(indices) - 1])
    if not mergeable(self, indices):
        fresh = b.temp(self.dtype, self.sizes)
        b.copy(self, fresh)
        self = fresh
    flat, index, dim = by_tensors(b, self, indices)
    take(b, out, flat, index, dim)


def _masked(indices: Indices) -> TensorView | None:
    """The mask that is the only index."""
    given = [index for index in indices if index is not None]
    return given[0] if len(given) == 1 and is_mask(given[0]) else None


@TABLE.op("index_put", "index_put_", "_unsafe_index_put")
def index_put(
    b: ProgramBuilder,
    out: TensorView,
    self: TensorView,
    indices: Indices,
    values: TensorView,
    accumulate: bool = False,
) -> None:
    """self with self[indices] = values, or += with accumulate"""
    mask = _masked(indices)
    if any(map(is_mask, indices)):
        given = [index for index in indices if index is not None]
        indexed = sum(index.rank if is_mask(index) else 1 for index in given)
        behind = self.rank - _first(indices) - indexed
        count = values.sizes[-1 - behind] if values.rank > behind else 1
        if mask is not None and count == 1:
            _put_one(b, out, self, mask, values, behind, accumulate=accumulate)
            return
        indices = _places(b, indices, count)
    work = out if mergeable(out, indices) else b.temp(out.dtype, out.sizes)
    b.copy(self, work)
    flat, index, dim = by_tensors(b, work, indices)
    shape = (*flat.sizes[:dim], *index.sizes, *flat.sizes[dim + 1 :])
    source = b.expanded(as_type(b, values, out.dtype), shape)
    line = merged_at(source, dim, index)
    if line is None:
        fresh = b.temp(out.dtype, shape)
        b.copy(source, fresh)
        line = merged_at(fresh, dim, index)
    assert line is not None
    places = b.expanded(along(in_line(b, index), flat.rank, dim), line.sizes)
    scatter(b, line, places, flat, dim, accumulate=accumulate)
    b.copy(work, out)


def _put_one(
    b: ProgramBuilder,
    out: TensorView,
    self: TensorView,
    mask: TensorView,
    values: TensorView,
    behind: int,
    *,
    accumulate: bool,
) -> None:
    """One value for all elements that the mask chooses, whatever their number."""
    kept = as_type(b, values, out.dtype)
    if kept.rank > behind:  # the chosen elements' dimension becomes the mask's
        at = kept.rank - behind - 1
        kept = kept.selected(at, 0)
        for _ in range(mask.rank):
            kept = kept.inserted(at)
    wide = as_truth(b, mask)
    for _ in range(behind):
        wide = wide.inserted(wide.rank)
    if accumulate:
        total = replace(b.temp(out.dtype, out.sizes), boolean=out.boolean)
        SUMS.function("add.Tensor")(b, total, self, kept)
        kept = total
    where(b, out, b.expanded(wide, out.sizes), kept, self)
