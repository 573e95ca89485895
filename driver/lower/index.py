# SPDX-License-Identifier: Apache-2.0
"""Ops that read by index: embedding, index_select, gather, indexing by tensors."""

from __future__ import annotations

from driver.isa import DType
from driver.isa.types import INDEX_DTYPES
from driver.lower.builder import ProgramBuilder
from driver.lower.convert import as_type, convert, is_float
from driver.lower.long_views import high_words, is_long, low_words
from driver.lower.positions import along
from driver.lower.registry import LoweringTable
from driver.runtime.views import TensorView, broadcast

TABLE = LoweringTable()


def as_indices(b: ProgramBuilder, view: TensorView) -> TensorView:
    """Indices as the engines read them."""
    if is_float(view):
        raise b.unsupported("index", view.dtype.name, "an integer type")
    return view if view.dtype in INDEX_DTYPES else as_type(b, view, DType.INT32)


def as_words(b: ProgramBuilder, index: TensorView) -> TensorView:
    """Integers as int32; those that it does not hold become its least, which is no place."""
    if not is_long(index):
        return index
    narrow = b.temp(DType.INT32, index.sizes)
    b.vector("long_in_word", (low_words(index), high_words(index)), narrow)
    return narrow


def in_line(b: ProgramBuilder, index: TensorView) -> TensorView:
    """The indices in row-major order as one dimension."""
    flat = index.flattened()
    if flat is None:
        fresh = b.temp(index.dtype, index.sizes)
        b.copy(index, fresh)
        flat = fresh.reshaped((fresh.count,), (1,))
    return flat


def merged_at(out: TensorView, dim: int, index: TensorView) -> TensorView | None:
    """A result whose dimensions from `dim` on are the index's, with those as one; or None."""
    inner = slice(dim, dim + index.rank)
    piece = out.reshaped(out.sizes[inner], out.strides[inner]).flattened()
    if piece is None:
        return None
    return out.reshaped(
        (*out.sizes[:dim], *piece.sizes, *out.sizes[inner.stop :]),
        (*out.strides[:dim], *piece.strides, *out.strides[inner.stop :]),
    )


def take(
    b: ProgramBuilder, out: TensorView, table: TensorView, index: TensorView, dim: int
) -> None:
    """out = table with dimension `dim` replaced by the dimensions of the index tensor."""
    places = in_line(b, as_indices(b, index))
    target = merged_at(out, dim, index)
    dense = (
        target
        if target is not None
        else b.temp(out.dtype, (*table.sizes[:dim], index.count, *table.sizes[dim + 1 :]))
    )
    b.gather(table, b.expanded(along(places, table.rank, dim), dense.sizes), dense, dim)
    if target is None:
        b.copy(dense.split(dim, index.sizes), out)


@TABLE.op("embedding")
def embedding(
    b: ProgramBuilder,
    out: TensorView,
    weight: TensorView,
    indices: TensorView,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> None:
    """Rows of the table"""
    take(b, out, weight, indices, 0)


@TABLE.op("index_select")
def index_select(
    b: ProgramBuilder, out: TensorView, self: TensorView, dim: int, index: TensorView
) -> None:
    """The positions of a dimension that the index names"""
    if self.rank:
        take(b, out, self, index.reshaped((index.count,), (*index.strides, 1)[:1]), dim % self.rank)
    else:
        b.copy(self, out)


@TABLE.op("gather")
def gather(
    b: ProgramBuilder,
    out: TensorView,
    self: TensorView,
    dim: int,
    index: TensorView,
    *,
    sparse_grad: bool = False,
) -> None:
    """out[i] = self[i with i[dim] replaced by index[i]]"""
    if not self.rank and not index.rank:
        convert(b, self, out)
        return
    self, index, out = map(ranked, (self, index, out))
    at = dim % self.rank
    b.gather(cropped(self, index, at), as_indices(b, index), out, at)


def ranked(view: TensorView) -> TensorView:
    """A tensor without dimensions as one of one element."""
    return view if view.rank else view.inserted(0)


def cropped(view: TensorView, index: TensorView, dim: int) -> TensorView:
    """The part of the view that indices of these sizes reach: smaller, except in `dim`."""
    for at in range(view.rank):
        if at != dim:
            view = view.sliced(at, 0, index.sizes[at])
    return view


# ---------------------------------------------------------------------- several indices
def is_mask(index: TensorView | None) -> bool:
    """Whether an index is a mask of elements: bool, or uint8, torch's former type of masks."""
    return index is not None and index.dtype is DType.UINT8


def by_tensors(
    b: ProgramBuilder, self: TensorView, indices: tuple[TensorView | None, ...]
) -> tuple[TensorView, TensorView, int]:
    """(self, index, dim) with one index in place of neighbouring ones.

    Negative indices count from the end; one outside its own dimension stays outside the merged
    one, so that the engine refuses it. Indexed dimensions become one, which self's strides must
    allow: see `mergeable`.
    """
    used = [at for at, index in enumerate(indices) if index is not None]
    given = [index for index in indices if index is not None]
    if used != list(range(used[0], used[0] + len(used))):
        raise b.unsupported("indices", used, "neighbouring dimensions")
    assert not any(is_mask(index) for index in given), "masks become places first"
    first, sizes = used[0], self.sizes[used[0] : used[-1] + 1]
    window = slice(first, used[-1] + 1)
    piece = self.reshaped(sizes, self.strides[window]).flattened()
    assert piece is not None
    flat = self.reshaped(
        (*self.sizes[:first], *piece.sizes, *self.sizes[window.stop :]),
        (*self.strides[:first], *piece.strides, *self.strides[window.stop :]),
    )
    shape = _shape(b, given)
    lines = [as_words(b, as_indices(b, index)) for index in given]
    total = b.temp(DType.INT32, lines[0].sizes)
    b.vector("place", (lines[0],), total, sizes[0])
    for index, size in zip(lines[1:], sizes[1:], strict=True):
        row, total = total, b.temp(DType.INT32, shape)
        b.vector("place_in_row", (row, index), total, size)
    return flat, b.expanded(total, shape), first


def mergeable(self: TensorView, indices: tuple[TensorView | None, ...]) -> bool:
    """Whether the indexed dimensions of self merge into one."""
    used = [at for at, index in enumerate(indices) if index is not None]
    window = slice(used[0], used[-1] + 1)
    return self.reshaped(self.sizes[window], self.strides[window]).flattened() is not None


def _shape(b: ProgramBuilder, views: list[TensorView]) -> tuple[int, ...]:
    shape = broadcast(*(view.sizes for view in views))
    if shape is None:
        raise b.unsupported("indices", [view.sizes for view in views], "shapes that broadcast")
    return shape
