# SPDX-License-Identifier: Apache-2.0
"""Ops that read and write by index: embedding and its gradient, gather, scatter and their kin."""

from __future__ import annotations

from math import prod

from driver.isa import DType
from driver.isa.types import INDEX_DTYPES, SCATTER_ADD_DTYPES
from driver.lower.convert import as_type, constant, convert
from driver.lower.program import ProgramBuilder
from driver.lower.registry import Rule, Scalar, Table
from driver.lower.views import TensorView, broadcast

TABLE = Table()


def _indices(b: ProgramBuilder, view: TensorView) -> TensorView:
    """Indices as the engines read them."""
    return view if view.dtype in INDEX_DTYPES else as_type(b, view, DType.INT32)


def _line(b: ProgramBuilder, index: TensorView) -> TensorView:
    """The indices in row-major order as one dimension."""
    flat = index.flattened()
    if flat is None:
        fresh = b.temp(index.dtype, index.sizes)
        b.copy(index, fresh)
        flat = fresh.reshaped((fresh.count,), (1,))
    return flat


def _along(view: TensorView, rank: int, dim: int) -> TensorView:
    """A line of indices as the dimension `dim` of `rank` dimensions."""
    return view.reshaped(
        [view.count if at == dim else 1 for at in range(rank)],
        [view.strides[0] if at == dim else 0 for at in range(rank)],
    )


def _in_place_of(out: TensorView, dim: int, index: TensorView) -> TensorView | None:
    """A result whose dimensions from `dim` on are the index's, with those as one; or None."""
    inner = slice(dim, dim + index.rank)
    piece = out.reshaped(out.sizes[inner], out.strides[inner]).flattened()
    if piece is None:
        return None
    return out.reshaped(
        (*out.sizes[:dim], *piece.sizes, *out.sizes[inner.stop :]),
        (*out.strides[:dim], *piece.strides, *out.strides[inner.stop :]),
    )


def _take(
    b: ProgramBuilder, out: TensorView, table: TensorView, index: TensorView, dim: int
) -> None:
    """out = table with dimension `dim` replaced by the dimensions of the index tensor."""
    places = _line(b, _indices(b, index))
    target = _in_place_of(out, dim, index)
    dense = (
        target
        if target is not None
        else b.temp(out.dtype, (*table.sizes[:dim], index.count, *table.sizes[dim + 1 :]))
    )
    along = b.expanded(_along(places, table.rank, dim), dense.sizes)
    b.gather(table, along, dense, dim)
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
    _take(b, out, weight, indices, 0)


@TABLE.op("index_select")
def index_select(
    b: ProgramBuilder, out: TensorView, self: TensorView, dim: int, index: TensorView
) -> None:
    """The positions of a dimension that the index names"""
    if self.rank:
        _take(
            b, out, self, index.reshaped((index.count,), (*index.strides, 1)[:1]), dim % self.rank
        )
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
    if not self.rank:
        convert(b, self, out)
        return
    at = dim % self.rank
    b.gather(_cropped(self, index, at), _indices(b, index), out, at)


def _cropped(view: TensorView, index: TensorView, dim: int) -> TensorView:
    """The part of the view that indices of these sizes reach: smaller but in `dim`."""
    for at in range(view.rank):
        if at != dim:
            view = view.sliced(at, 0, index.sizes[at])
    return view


# ---------------------------------------------------------------------- several indices
def _by_tensors(
    b: ProgramBuilder, self: TensorView, indices: tuple[TensorView | None, ...]
) -> tuple[TensorView, TensorView, int]:
    """(self, index, dim) with one index in place of neighbouring ones.

    Negative indices count from the end. Indexed dimensions become one, which strides must allow.
    """
    used = [at for at, index in enumerate(indices) if index is not None]
    given = [index for index in indices if index is not None]
    if used != list(range(used[0], used[0] + len(used))):
        raise b.unsupported("indices", used, "neighbouring dimensions")
    if any(index.boolean for index in given):
        raise b.unsupported("indices", "a mask", "integers: a mask's result has no fixed size")
    first, sizes = used[0], self.sizes[used[0] : used[-1] + 1]
    window = slice(first, used[-1] + 1)
    piece = self.reshaped(sizes, self.strides[window]).flattened()
    if piece is None:
        raise b.unsupported("self", self.strides, "indexed dimensions that merge into one")
    flat = self.reshaped(
        (*self.sizes[:first], *piece.sizes, *self.sizes[window.stop :]),
        (*self.strides[:first], *piece.strides, *self.strides[window.stop :]),
    )
    shape = _shape(b, given)
    total: TensorView | None = None
    for at, (index, size) in enumerate(zip(given, sizes, strict=True)):
        wrapped = b.temp(DType.INT32, index.sizes)
        b.vector("wrap_index", (index,), wrapped, size)
        step = prod(sizes[at + 1 :])
        if total is None:
            total = wrapped
            if step != 1:
                b.vector("int_affine", (wrapped,), wrapped, step, 0)
        else:
            fresh = b.temp(DType.INT32, shape)
            b.vector("int_add", (total, wrapped), fresh, step)
            total = fresh
    assert total is not None
    return flat, b.expanded(total, shape), first


def _shape(b: ProgramBuilder, views: list[TensorView]) -> tuple[int, ...]:
    shape = broadcast(*(view.sizes for view in views))
    if shape is None:
        raise b.unsupported("indices", [view.sizes for view in views], "shapes that broadcast")
    return shape


@TABLE.op("index.Tensor", "_unsafe_index.Tensor")
def index_tensors(
    b: ProgramBuilder,
    out: TensorView,
    self: TensorView,
    indices: tuple[TensorView | None, ...],
) -> None:
    """self[indices]"""
    flat, index, dim = _by_tensors(b, self, indices)
    _take(b, out, flat, index, dim)


@TABLE.op("index_put", "index_put_", "_unsafe_index_put")
def index_put(
    b: ProgramBuilder,
    out: TensorView,
    self: TensorView,
    indices: tuple[TensorView | None, ...],
    values: TensorView,
    accumulate: bool = False,
) -> None:
    """self with self[indices] = values, or += with accumulate"""
    b.copy(self, out)
    flat, index, dim = _by_tensors(b, out, indices)
    shape = (*flat.sizes[:dim], *index.sizes, *flat.sizes[dim + 1 :])
    source = b.expanded(as_type(b, values, out.dtype), shape)
    line = _in_place_of(source, dim, index)
    if line is None:
        fresh = b.temp(out.dtype, shape)
        b.copy(source, fresh)
        line = _in_place_of(fresh, dim, index)
    assert line is not None
    along = b.expanded(_along(_line(b, index), flat.rank, dim), line.sizes)
    _scatter(b, line, along, flat, dim, accumulate=accumulate)


# ---------------------------------------------------------------------- scatters
def _scatter(
    b: ProgramBuilder,
    source: TensorView,
    index: TensorView,
    out: TensorView,
    dim: int,
    *,
    accumulate: bool,
) -> None:
    """The builder's scatter; types it cannot add in go by way of int32."""
    if not accumulate or out.dtype in SCATTER_ADD_DTYPES:
        b.scatter(source, index, out, dim, accumulate=accumulate)
        return
    sums = b.temp(DType.INT32, out.sizes)
    convert(b, out, sums)
    b.scatter(as_type(b, source, DType.INT32), index, sums, dim, accumulate=True)
    convert(b, sums, out)


def _scattered(*, accumulate: bool) -> Rule:
    def rule(
        b: ProgramBuilder,
        out: TensorView,
        self: TensorView,
        dim: int,
        index: TensorView,
        src: TensorView,
    ) -> None:
        b.copy(self, out)
        at = dim % max(self.rank, 1)
        if not self.rank:
            self, index, src, out = (view.inserted(0) for view in (self, index, src, out))
        for other in range(self.rank):
            src = src.sliced(other, 0, index.sizes[other])
        _scatter(b, src, _indices(b, index), _cropped(out, index, at), at, accumulate=accumulate)

    return rule


TABLE.op("scatter.src", "scatter_.src")(_scattered(accumulate=False))
TABLE.op("scatter_add", "scatter_add_")(_scattered(accumulate=True))


@TABLE.op("scatter.value", "scatter_.value")
def scatter_value(
    b: ProgramBuilder,
    out: TensorView,
    self: TensorView,
    dim: int,
    index: TensorView,
    value: Scalar,
) -> None:
    """self with a number at the places that the index names"""
    source = b.expanded(constant(b, value, out.dtype), index.sizes)
    _scattered(accumulate=False)(b, out, self, dim, index, source)


def _by_line(*, accumulate: bool) -> Rule:
    """index_copy and index_add: whole positions of a dimension."""

    def rule(
        b: ProgramBuilder,
        out: TensorView,
        self: TensorView,
        dim: int,
        index: TensorView,
        source: TensorView,
        *,
        alpha: Scalar = 1,
    ) -> None:
        if alpha != 1:
            raise b.unsupported("alpha", alpha, "1")
        b.copy(self, out)
        at = dim % max(self.rank, 1)
        if not self.rank:
            source, out = (view.reshaped((1,), (1,)) for view in (source, out))
        line = _line(b, _indices(b, index))
        along = b.expanded(_along(line, out.rank, at), source.sizes)
        _scatter(b, source, along, out, at, accumulate=accumulate)

    return rule


TABLE.op("index_copy", "index_copy_")(_by_line(accumulate=False))
TABLE.op("index_add", "index_add_")(_by_line(accumulate=True))


@TABLE.op("embedding_dense_backward")
def embedding_backward(
    b: ProgramBuilder,
    out: TensorView,
    grad_output: TensorView,
    indices: TensorView,
    num_weights: int,
    padding_idx: int,
    scale_grad_by_freq: bool,
) -> None:
    """The gradient's rows added up where their indices point; none for padding_idx"""
    if scale_grad_by_freq:
        raise b.unsupported("scale_grad_by_freq", True, "False")
    b.fill(out, 0)
    if not indices.count:
        return
    rows = _in_place_of(grad_output, 0, indices)
    if rows is None:
        fresh = b.temp(grad_output.dtype, grad_output.sizes)
        b.copy(grad_output, fresh)
        rows = fresh.reshaped((indices.count, out.sizes[1]), (out.sizes[1], 1))
    along = b.expanded(_along(_line(b, _indices(b, indices)), 2, 0), rows.sizes)
    _scatter(b, rows, along, out, 0, accumulate=True)
    if 0 <= padding_idx < num_weights:
        b.fill(out.selected(0, padding_idx), 0)
