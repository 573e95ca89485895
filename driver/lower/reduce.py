# SPDX-License-Identifier: Apache-2.0
"""Reductions over any dimensions: sums, means, variance. See extremes.py for largest and smallest.

A packet reduces the innermost dimension. Dimensions that merge into one are one packet; others are
reduced one after the other, with 32-bit words in between, so there is one rounding at the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from math import prod

from driver.config import HwConfig
from driver.isa import DTYPE_BYTES, DType
from driver.lower import long_reduce
from driver.lower.builder import ProgramBuilder
from driver.lower.convert import as_float, as_truth, as_type, is_float
from driver.lower.elementwise import divide_by
from driver.lower.long_sums import LONGEST_SUM, in_parts, part_count
from driver.lower.long_views import is_long
from driver.lower.registry import LoweringTable, RuleFunction, Scalar
from driver.runtime.views import TensorView, collapse

TABLE = LoweringTable()
Dims = int | tuple[int, ...] | None


def with_kept_dims(
    x: TensorView, out: TensorView, dim: Dims, keepdim: bool
) -> tuple[TensorView, TensorView, tuple[int, ...]]:
    """(x, out, dims): the reduced dimensions, ascending; out keeps them with size 1.

    None and () mean all dimensions. A tensor without dimensions gets one.
    """
    if not x.rank:
        return x.inserted(0), out.inserted(0), (0,)
    dims = (dim,) if isinstance(dim, int) else (dim or range(x.rank))
    dims = tuple(sorted(at % x.rank for at in dims))
    if not keepdim:
        for at in dims:
            out = out.inserted(at)
    return x, out, dims


def reduce(
    b: ProgramBuilder, program: str, x: TensorView, out: TensorView, dims: Sequence[int]
) -> None:
    """A reducing program of one source over `dims` (ascending) of x; out has size 1 in them."""
    reduce_pair(b, program, (x,), out, dims)


def reduce_pair(
    b: ProgramBuilder,
    program: str,
    sources: Sequence[TensorView],
    out: TensorView,
    dims: Sequence[int],
) -> None:
    """The same for a program of several sources, all of one shape.

    Later stages, where dimensions do not merge, run `_NEXT[program]` on the words in between. Sums
    of long rows have such a stage, too: fewer roundings on each element's way.
    """
    rest = [at for at in range(out.rank) if at not in dims]
    order = [*rest, *dims]
    split = len(rest)
    rows = [source.permuted(order) for source in sources]
    inner, walks = collapse(rows[0].sizes[split:], *(row.strides[split:] for row in rows))
    lead = rows[0].sizes[:split]
    rows = [
        row.reshaped((*lead, *inner), (*row.strides[:split], *walk))
        for row, walk in zip(rows, walks, strict=True)
    ]
    target = out.permuted(order)
    target = target.reshaped((*lead, 1), (*target.strides[:split], 1))
    while (long := _is_long(program, inner)) or len(inner) > 1:
        if long:
            fresh = _parts(b, program, rows)
        else:
            kind = DType.FP32 if is_float(out) else DType.INT32
            words = b.temp(kind, (*lead, *inner[:-1], 1))
            b.vector(program, rows, words)
            fresh = words.reshaped(words.sizes[:-1], words.strides[:-1])
        rows, program, inner = [fresh], _NEXT[program], fresh.sizes[len(lead) :]
    b.vector(program, rows, target)


def _is_long(program: str, sizes: Sequence[int]) -> bool:
    return bool(sizes) and sizes[-1] > LONGEST_SUM and _NEXT.get(program) == "sum"


def _parts(b: ProgramBuilder, program: str, rows: Sequence[TensorView]) -> TensorView:
    """Each part of the rows by itself, the last one of what is left: fp32 words."""
    *lead, size = rows[0].sizes
    found = b.temp(DType.FP32, (*lead, part_count(size)))
    for first, parts in in_parts(rows):
        target = found.sliced(-1, first, parts[0].sizes[-2])
        b.vector(program, parts, target.inserted(found.rank))
    return found


_NEXT = {
    **{name: name for name in ("sum", "amax", "amin", "int_sum", "int_amax", "int_amin")},
    "largest_bits": "int_amax",
    "sum_magnitudes": "sum",
    "sum_squares": "sum",
    "sum_differences": "sum",
    "sum_square_differences": "sum",
}


def summed(b: ProgramBuilder, x: TensorView, dims: Sequence[int]) -> TensorView:
    """Σ x in fp32, of size 1 in `dims`; 0 without an element."""
    total = b.temp(DType.FP32, [1 if at in dims else size for at, size in enumerate(x.sizes)])
    if x.count:
        reduce(b, "sum", x, total, dims)
    else:
        b.fill(total, 0.0)
    return total


def typed(out: TensorView, program: str) -> str:
    """The program, or the one for integers where `out` holds them."""
    return program if is_float(out) else f"int_{program}"


# ---------------------------------------------------------------------- sums and means
def over_dims(
    compute: Callable[[ProgramBuilder, TensorView, TensorView, tuple[int, ...]], None],
) -> RuleFunction:
    """A reduction of `self` over `dim`: `compute` gets x, the result with the reduced dimensions
    of size 1, and those dimensions."""

    def rule(
        b: ProgramBuilder,
        out: TensorView,
        self: TensorView,
        dim: Dims = None,
        keepdim: bool = False,
        *,
        dtype: str | None = None,
    ) -> None:
        x, wide, dims = with_kept_dims(self, out, dim, keepdim)
        compute(b, x, wide, dims)

    return rule


def _sum(
    add: Callable[[ProgramBuilder, TensorView, TensorView, tuple[int, ...]], None],
) -> RuleFunction:
    """Σ self, where there is an element, by `add`."""

    def compute(b: ProgramBuilder, x: TensorView, out: TensorView, dims: tuple[int, ...]) -> None:
        if is_float(x) and not is_float(out) and not out.boolean:
            x = as_type(b, x, out.dtype)
        if x.count:
            add(b, x, out, dims)
        else:
            b.fill(out, 0)

    return over_dims(compute)


def _add_words(b: ProgramBuilder, x: TensorView, out: TensorView, dims: Sequence[int]) -> None:
    if out.boolean:  # the sum of truth values
        reduce(b, "int_amax", as_truth(b, x), out, dims)
        return
    reduce(b, typed(out, "sum"), as_float(b, x) if is_float(out) else x, out, dims)


def _fits_words(
    hw: HwConfig, out: TensorView, *, self: TensorView, dim: Dims, keepdim: bool, **_other: object
) -> bool:
    """Whether sums are in 32 bits, or integers of this type and number have no larger ones."""
    if not is_long(out) or not self.count:
        return True
    dtype = out.dtype if is_float(self) else self.dtype
    x, _, dims = with_kept_dims(self, out, dim, keepdim)
    return prod(x.sizes[at] for at in dims) << 8 * DTYPE_BYTES[dtype] < 1 << 31


def _is_long_sum(hw: HwConfig, out: TensorView, **_: object) -> bool:
    return is_long(out)


_SUMS = ("sum", "sum.dim_IntList")
TABLE.op(*_SUMS, rule="words", when=_fits_words)(_sum(_add_words))
TABLE.op(*_SUMS, rule="halves", when=_is_long_sum)(_sum(long_reduce.total))


def _mean(b: ProgramBuilder, x: TensorView, out: TensorView, dims: tuple[int, ...]) -> None:
    """Σ self ÷ count"""
    if not x.count:
        b.fill(out, math.nan)
        return
    sums = out if out.dtype is DType.FP32 else b.temp(DType.FP32, out.sizes)
    reduce(b, "sum", as_float(b, x), sums, dims)
    divide_by(b, sums, out, prod(x.sizes[at] for at in dims))


TABLE.op("mean", "mean.dim")(over_dims(_mean))


def _variance(*, root: bool) -> RuleFunction:
    def rule(
        b: ProgramBuilder,
        out: TensorView,
        self: TensorView,
        dim: Dims = None,
        *,
        correction: Scalar | None = None,
        keepdim: bool = False,
    ) -> None:
        x, wide, dims = with_kept_dims(self, out, dim, keepdim)
        count = prod(x.sizes[at] for at in dims)
        if not count:
            b.fill(out, math.nan)
            return
        squares = wide if wide.dtype is DType.FP32 else b.temp(DType.FP32, wide.sizes)
        squared_differences(b, x, squares, dims)
        divisor = max(0.0, count - float(1 if correction is None else correction))
        divide_by(b, squares, squares if root else wide, divisor)
        if root:
            b.vector("sqrt", (squares,), wide)

    return rule


TABLE.op("var.correction")(_variance(root=False))
TABLE.op("std.correction")(_variance(root=True))


def squared_differences(
    b: ProgramBuilder, x: TensorView, out: TensorView, dims: Sequence[int]
) -> TensorView:
    """out = Σ (x − mean)² over `dims`, of which out has size 1; the means, in fp32."""
    means = _means(b, x, out.sizes, dims)
    reduce_pair(b, "sum_square_differences", (x, b.expanded(means, x.sizes)), out, dims)
    return means


def _means(
    b: ProgramBuilder, x: TensorView, sizes: Sequence[int], dims: Sequence[int]
) -> TensorView:
    """The means over `dims`, of `sizes`; the mean of what is left around them is added to them.

    So the error of a long sum is one of deviations, not of values: equal values have variance 0.
    An infinite mean stays as it is.
    """
    count = prod(x.sizes[at] for at in dims)
    means, rest = (b.temp(DType.FP32, sizes) for _ in range(2))
    reduce(b, "sum", x, means, dims)
    divide_by(b, means, means, count)
    reduce_pair(b, "sum_differences", (x, b.expanded(means, x.sizes)), rest, dims)
    b.vector("add_number", (means, rest), means, 1.0 / count)
    return means
