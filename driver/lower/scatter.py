# SPDX-License-Identifier: Apache-2.0
"""Ops that write by index: scatter and similar ops, the gradient of embedding."""

from __future__ import annotations

from driver.isa import DType
from driver.lower import long_reduce
from driver.lower.builder import ProgramBuilder
from driver.lower.convert import as_type, constant, convert, is_float, number
from driver.lower.index import as_indices, cropped, in_line, merged_at, ranked
from driver.lower.long_views import is_long
from driver.lower.positions import along
from driver.lower.registry import LoweringTable, RuleFunction, Scalar
from driver.runtime.views import TensorView

TABLE = LoweringTable()
_SUMS = (DType.FP32, DType.INT32)


def scatter(
    b: ProgramBuilder,
    source: TensorView,
    index: TensorView,
    out: TensorView,
    dim: int,
    *,
    accumulate: bool,
) -> None:
    """The builder's scatter. Sums are added in fp32, int32 or as halves of int64: those of 16 bits
    stop growing once an addend is less than half of their last place."""
    if not accumulate or out.dtype in _SUMS:
        b.scatter(source, index, out, dim, accumulate=accumulate)
        return
    if is_long(out):
        long_reduce.scatter_add(b, source, index, out, dim)
        return
    wide = DType.FP32 if is_float(out) else DType.INT32
    sums = b.temp(wide, out.sizes)
    convert(b, out, sums)
    b.scatter(as_type(b, source, wide), index, sums, dim, accumulate=True)
    convert(b, sums, out)


def _scattered(*, accumulate: bool) -> RuleFunction:
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
        self, index, src, out = map(ranked, (self, index, src, out))
        for other in range(self.rank):
            src = src.sliced(other, 0, index.sizes[other])
        scatter(b, src, as_indices(b, index), cropped(out, index, at), at, accumulate=accumulate)

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
    source = b.expanded(constant(b, value, out.dtype, boolean=out.boolean), index.sizes)
    _scattered(accumulate=False)(b, out, self, dim, index, source)


def _by_line(*, accumulate: bool) -> RuleFunction:
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
        line = in_line(b, as_indices(b, index))
        places = b.expanded(along(line, out.rank, at), source.sizes)
        scatter(b, source, places, out, at, accumulate=accumulate)

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
    """The gradient's rows added up where their indices point, in the order of the indices; none
    for padding_idx"""
    b.fill(out, 0)
    if not indices.count:
        return
    rows = merged_at(grad_output, 0, indices)
    if rows is None:
        fresh = b.temp(grad_output.dtype, grad_output.sizes)
        b.copy(grad_output, fresh)
        rows = fresh.reshaped((indices.count, out.sizes[1]), (out.sizes[1], 1))
    line = in_line(b, as_indices(b, indices))
    if scale_grad_by_freq:
        rows = _per_use(b, rows, line, num_weights)
    places = b.expanded(along(line, 2, 0), rows.sizes)
    scatter(b, rows, places, out, 0, accumulate=True)
    if 0 <= padding_idx < num_weights:
        b.fill(out.selected(0, padding_idx), 0)


def _per_use(b: ProgramBuilder, rows: TensorView, line: TensorView, num_weights: int) -> TensorView:
    """Each row divided by the number of rows with its index, rounded to its type."""
    uses = b.temp(DType.FP32, (num_weights,))
    b.fill(uses, 0.0)
    b.scatter(b.expanded(number(b, 1.0), line.sizes), line, uses, 0, accumulate=True)
    count = b.temp(DType.FP32, (line.count, 1))
    b.gather(uses, line, count.reshaped((line.count,), (1,)), 0)
    shares = b.temp(rows.dtype, rows.sizes)
    b.vector("div", (rows, count), shares)
    return shares
