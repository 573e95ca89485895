# SPDX-License-Identifier: Apache-2.0
"""Products over dimensions and running products, running extremes: by halves and doubling steps."""

from __future__ import annotations

from collections.abc import Callable

from driver.isa import DType
from driver.lower import long
from driver.lower.builder import ProgramBuilder
from driver.lower.compare import equal_elements
from driver.lower.convert import (
    as_truth,
    as_type,
    constant,
    convert,
    is_float,
    require_numbers,
    word_type,
)
from driver.lower.elementwise import add, maximum, minimum, mul
from driver.lower.long_views import is_long
from driver.lower.positions import along, positions
from driver.lower.reduce import reduce, with_kept_dims
from driver.lower.registry import LoweringTable, RuleFunction
from driver.runtime.views import TensorView

TABLE = LoweringTable()
Pairwise = Callable[[ProgramBuilder, TensorView, TensorView, TensorView], None]
"""(builder, result, first, second) → adds the packets."""


@TABLE.op("prod", "prod.dim_int")
def prod(
    b: ProgramBuilder,
    out: TensorView,
    self: TensorView,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    dtype: str | None = None,
) -> None:
    """Π self: the first half times the second, until one element is left"""
    x, wide, dims = with_kept_dims(self, out, dim, keepdim)
    if not x.count:
        b.fill(out, 1)
        return
    x = made = _words(b, x, out)
    for at in dims:
        made = _product(b, made, at)
    if is_float(x):
        seen = b.temp(DType.FP32, made.sizes)
        reduce(b, "amax", _zeros(b, x), seen, dims)
        made = _zero_where(b, seen, made)
    convert(b, made, wide)


def _words(b: ProgramBuilder, x: TensorView, out: TensorView) -> TensorView:
    """x in the type of the words between packets; in that of the result first, where it rounds."""
    if out.boolean:
        return as_type(b, as_truth(b, x), word_type(out))
    return as_type(b, as_type(b, x, out.dtype) if is_float(out) else x, word_type(out))


def _zeros(b: ProgramBuilder, x: TensorView) -> TensorView:
    """1 for 0, NaN for what is not finite, 0 for other numbers.

    Where the largest of them is 1, the product is 0, which halves that overflow would not give.
    """
    nothing, is_zero = b.temp(DType.FP32, x.sizes), b.temp(DType.UINT8, x.sizes)
    mul(b, nothing, x, 0.0)
    equal_elements(b, is_zero, x, 0.0)
    found = b.temp(DType.FP32, x.sizes)
    convert(b, is_zero, found)
    add(b, found, found, nothing)
    return found


def _zero_where(b: ProgramBuilder, zeros: TensorView, made: TensorView) -> TensorView:
    """`made`, but 0 where `zeros` is 1."""
    is_zero = b.temp(DType.UINT8, made.sizes)
    equal_elements(b, is_zero, zeros, 1.0)
    nothing, found = constant(b, 0.0, DType.FP32), b.temp(DType.FP32, made.sizes)
    b.vector("where", (is_zero, b.expanded(nothing, made.sizes), made), found)
    return found


def _product(b: ProgramBuilder, x: TensorView, dim: int) -> TensorView:
    """The product along one dimension, of which one element is left."""
    while (count := x.sizes[dim]) > 1:
        half = count // 2
        fresh = b.temp(x.dtype, [count - half if at == dim else n for at, n in enumerate(x.sizes)])
        pair = (x.sliced(dim, 0, half), x.sliced(dim, half, half))
        mul(b, fresh.sliced(dim, 0, half), *pair)
        if count % 2:
            b.copy(x.sliced(dim, count - 1, 1), fresh.sliced(dim, half, 1))
        x = fresh
    return x


# ---------------------------------------------------------------------- running
def _running(b: ProgramBuilder, x: TensorView, dim: int, combine: Pairwise) -> TensorView:
    """out[i] = x[0] ∘ … ∘ x[i] for an associative ∘: each pass adds what lies 1, 2, 4, … before."""
    step, count = 1, x.sizes[dim]
    while step < count:
        fresh = b.temp(x.dtype, x.sizes)
        b.copy(x.sliced(dim, 0, step), fresh.sliced(dim, 0, step))
        pair = (x.sliced(dim, 0, count - step), x.sliced(dim, step, count - step))
        combine(b, fresh.sliced(dim, step, count - step), *pair)
        x, step = fresh, 2 * step
    return x


@TABLE.op("cumprod", "cumprod_")
def cumprod(
    b: ProgramBuilder, out: TensorView, self: TensorView, dim: int, *, dtype: str | None = None
) -> None:
    """out[i] = Π self[0…i]"""
    require_numbers(b, out)
    x, wide = (self, out) if self.rank else (self.inserted(0), out.inserted(0))
    at, words = dim % x.rank, _words(b, x, out)
    made = _running(b, words, at, mul)
    if is_float(words):
        made = _zero_where(b, _running(b, _zeros(b, words), at, maximum), made)
    convert(b, made, wide)


def _running_extreme(pick: Pairwise) -> RuleFunction:
    def rule(
        b: ProgramBuilder, outs: tuple[TensorView, TensorView], self: TensorView, dim: int
    ) -> None:
        views = (self, *outs)
        x, values, places = views if self.rank else (view.inserted(0) for view in views)
        at = dim % x.rank
        best = _running(b, as_type(b, x, word_type(x)), at, pick)
        convert(b, best, values)
        convert(b, _last_hit(b, x, best, at), places)

    return rule


def _last_hit(b: ProgramBuilder, x: TensorView, best: TensorView, dim: int) -> TensorView:
    """Where the running extreme was last met: at the largest index so far with it or a NaN."""
    index = along(positions(b, x.sizes[dim]), x.rank, dim)
    hit = b.temp(DType.UINT8, x.sizes)
    _is_hit(b, hit, x, best)
    found = b.temp(DType.INT32, x.sizes)
    zero = b.temp(DType.INT32, ())
    b.fill(zero, 0)
    b.vector("where", (hit, index, zero), found)
    return _running(b, found, dim, maximum)


def _is_hit(b: ProgramBuilder, hit: TensorView, x: TensorView, best: TensorView) -> None:
    if is_long(x):
        long.compare(b, "eq", hit, x, best)
    elif is_float(x):
        nan = b.temp(DType.UINT8, x.sizes)
        b.vector("not_equal", (x, x), nan)
        b.vector("equal", (x, best), hit)
        b.vector("logical_or", (hit, nan), hit)
    else:
        b.vector("int_equal", (x, best), hit)


TABLE.op("cummax", outputs=2)(_running_extreme(maximum))
TABLE.op("cummin", outputs=2)(_running_extreme(minimum))
