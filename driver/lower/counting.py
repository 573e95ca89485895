# SPDX-License-Identifier: Apache-2.0
"""Ops that count: elements per bin, elements below a value, members of a set.

A count over pairs is a comparison of all of them and a sum; bins are a SCATTER that adds ones.
"""

from __future__ import annotations

from math import ceil, floor, prod

from driver.isa import DType
from driver.lower.builder import ProgramBuilder
from driver.lower.compare import TABLE as RELATIONS
from driver.lower.convert import constant, convert, is_float
from driver.lower.index import as_indices, in_line
from driver.lower.reduce import reduce
from driver.lower.registry import LoweringTable, Scalar
from driver.lower.words import integer_range, wrapped
from driver.runtime.views import TensorView, broadcast

TABLE = LoweringTable()
_MOST_PAIRS = 1 << 26
"""Beyond, comparing all pairs takes too long and too much memory."""


# ---------------------------------------------------------------------- pairs
def _over_pairs(
    b: ProgramBuilder,
    relation: str,
    out: TensorView,
    program: str,
    pair: tuple[TensorView, TensorView],
) -> None:
    """out = the reduction of `relation` over the innermost dimension of two operands."""
    sizes = broadcast(*(view.sizes for view in pair))
    if sizes is None or prod(sizes) > _MOST_PAIRS:
        shapes = [view.sizes for view in pair]
        raise b.unsupported("pairs", shapes, f"at most {_MOST_PAIRS} pairs of elements")
    truth = b.temp(DType.UINT8, sizes)
    left, right = (b.expanded(view, sizes) for view in pair)
    RELATIONS.function(f"{relation}.Tensor")(b, truth, left, right)
    reduce(b, program, truth, out.inserted(out.rank), (out.rank,))


def _searched(
    b: ProgramBuilder, out: TensorView, edges: TensorView, values: TensorView, right: bool
) -> None:
    """How many of each row of edges lie below each value; `right`: or are equal to it."""
    if not edges.count:
        b.fill(out, 0)
        return
    rows = edges.inserted(edges.rank - 1) if edges.rank > 1 else edges
    pair = (rows, values.inserted(values.rank))
    relation = "le" if right else "lt"
    if not is_float(values):
        _over_pairs(b, relation, out, "int_sum", pair)
        return
    below = b.temp(DType.INT32, out.sizes)
    _over_pairs(b, relation, below, "int_sum", pair)
    # Behind all edges, also those that are NaN: a NaN, and what is behind every number.
    last, behind = b.temp(DType.UINT8, out.sizes), b.temp(DType.UINT8, out.sizes)
    b.vector("not_equal", (values, values), last)
    if is_float(edges):
        number = b.temp(DType.UINT8, edges.sizes)
        b.vector("equal", (edges, edges), number)
        numbers = b.temp(DType.INT32, (*edges.sizes[:-1], 1))
        reduce(b, "int_sum", number, numbers, (edges.rank - 1,))
        if edges.rank == 1:
            numbers = numbers.reshaped((), ())
        b.vector("int_equal", (below, b.expanded(numbers, out.sizes)), behind)
        b.vector("logical_or", (last, behind), last)
    every = constant(b, edges.sizes[-1], DType.INT32)
    b.vector("where", (last, b.expanded(every, out.sizes), below), below)
    convert(b, below, out)


def _side(b: ProgramBuilder, right: bool, side: str | None, sorter: TensorView | None) -> bool:
    if sorter is not None:
        raise b.unsupported("sorter", sorter.sizes, "none")
    return right or side == "right"


@TABLE.op("searchsorted.Tensor")
def searchsorted(
    b: ProgramBuilder,
    out: TensorView,
    sorted_sequence: TensorView,
    self: TensorView,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: TensorView | None = None,
) -> None:
    """Where each value belongs in its row of sorted numbers"""
    _searched(b, out, sorted_sequence, self, _side(b, right, side, sorter))


@TABLE.op("searchsorted.Scalar")
def searchsorted_scalar(
    b: ProgramBuilder,
    out: TensorView,
    sorted_sequence: TensorView,
    self: Scalar,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: TensorView | None = None,
) -> None:
    """Where a number belongs in sorted ones"""
    behind, dtype = _side(b, right, side, sorter), sorted_sequence.dtype
    if not is_float(sorted_sequence):
        held = integer_range(dtype)
        if isinstance(self, int):
            self = wrapped(self, dtype)
        elif held[0] <= self <= held[-1]:
            self = floor(self) if behind else ceil(self)
        else:  # before or behind all numbers of the type; a NaN is behind
            b.fill(out, 0 if self < held[0] else sorted_sequence.sizes[-1])
            return
    _searched(b, out, sorted_sequence, constant(b, self, dtype), behind)


@TABLE.op("bucketize.Tensor")
def bucketize(
    b: ProgramBuilder,
    out: TensorView,
    self: TensorView,
    boundaries: TensorView,
    *,
    out_int32: bool = False,
    right: bool = False,
) -> None:
    """Between which boundaries each element lies"""
    _searched(b, out, boundaries, self, right)


@TABLE.op("isin.Tensor_Tensor")
def isin(
    b: ProgramBuilder,
    out: TensorView,
    elements: TensorView,
    test_elements: TensorView,
    *,
    assume_unique: bool = False,
    invert: bool = False,
) -> None:
    """Whether each element is one of the others"""
    if not test_elements.count:
        b.fill(out, int(invert))
        return
    members = in_line(b, test_elements)
    _over_pairs(b, "eq", out, "int_amax", (elements.inserted(elements.rank), members))
    if invert:
        b.vector("bits_xor_imm", (out,), out, 1)


@TABLE.op("isin.Tensor_Scalar")
def isin_scalar(
    b: ProgramBuilder,
    out: TensorView,
    elements: TensorView,
    test_element: Scalar,
    *,
    assume_unique: bool = False,
    invert: bool = False,
) -> None:
    """Whether each element is the number"""
    RELATIONS.function(f"{'ne' if invert else 'eq'}.Scalar")(b, out, elements, test_element)


# ---------------------------------------------------------------------- bins
def _add_ones(b: ProgramBuilder, places: TensorView, counts: TensorView) -> None:
    """Add 1 to the counts at these places, both of one dimension."""
    b.fill(counts, 0)
    ones = b.expanded(constant(b, 1, counts.dtype), places.sizes)
    b.scatter(ones, places, counts, 0, accumulate=True)


@TABLE.op("bincount")
def bincount(
    b: ProgramBuilder,
    out: TensorView,
    self: TensorView,
    weights: TensorView | None = None,
    minlength: int = 0,
) -> None:
    """How often each number occurs"""
    if weights is not None:
        raise b.unsupported("weights", weights.sizes, "none")
    counts = b.temp(DType.INT32, out.sizes)
    if self.count:
        _add_ones(b, as_indices(b, self), counts)
    else:
        b.fill(counts, 0)
    convert(b, counts, out)


@TABLE.op("histc")
def histc(
    b: ProgramBuilder,
    out: TensorView,
    self: TensorView,
    bins: int = 100,
    min: Scalar = 0,
    max: Scalar = 0,
) -> None:
    """How many elements lie in each of equal parts of a range; by default their own"""
    if self.dtype is not DType.FP32:
        raise b.unsupported("dtype", self.dtype.name, "FP32, as torch's own on the CPU")
    if not self.count:
        b.fill(out, 0)
        return
    line, places = in_line(b, self), b.temp(DType.INT32, (self.count,))
    edges = [constant(b, edge, DType.FP32) for edge in (min, max)]
    if min == max:
        for edge, program in zip(edges, ("amin", "amax"), strict=True):
            reduce(b, program, line, edge.inserted(0), (0,))
    wide = [b.expanded(edge, line.sizes) for edge in edges]
    b.vector("histogram_bin", (line, *wide), places, float(bins), bins - 1)
    counts = b.temp(DType.FP32, (bins + 1,))
    _add_ones(b, places, counts)
    b.copy(counts.sliced(0, 0, bins), out)
