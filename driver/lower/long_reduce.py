# SPDX-License-Identifier: Apache-2.0
"""Reductions of int64 over any dimensions: sums modulo 2⁶⁴, extremes and where they are.

A packet reduces one word along the innermost dimension. Dimensions that do not merge are reduced
one after the other, with int64 in between.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from driver.isa import DType
from driver.lower import long
from driver.lower.builder import ProgramBuilder
from driver.lower.long_views import high_words, is_long, low_words
from driver.runtime.views import TensorView, collapse

_Rows = Callable[[ProgramBuilder, TensorView, TensorView], None]
"""Reduces the innermost dimension of the first view into the second, which has size 1 there."""
_LONGEST_SUM = 1 << 16
"""So many halves of 16 bits have a sum below 2³²."""


def _fold(
    b: ProgramBuilder, rows: _Rows, x: TensorView, out: TensorView, dims: Sequence[int]
) -> None:
    """Reduce `dims` (ascending) of x by `rows`; out has size 1 in them."""
    rest = [at for at in range(out.rank) if at not in dims]
    x, out = x.permuted([*rest, *dims]), out.permuted([*rest, *dims])
    lead = len(rest)
    inner, (walk,) = collapse(x.sizes[lead:], x.strides[lead:])
    x = x.reshaped((*x.sizes[:lead], *inner), (*x.strides[:lead], *walk))
    out = out.reshaped((*out.sizes[:lead], 1), (*out.strides[:lead], 1))
    while x.rank > lead + 1:
        fresh = b.temp(DType.INT64, (*x.sizes[:-1], 1))
        rows(b, x, fresh)
        x = fresh.reshaped(x.sizes[:-1], fresh.strides[:-1])
    rows(b, x, out)


# ---------------------------------------------------------------------- sums
def total(b: ProgramBuilder, x: TensorView, out: TensorView, dims: Sequence[int]) -> None:
    """Σ over `dims` (ascending) of integers of any type, modulo 2⁶⁴; out has size 1 in them."""
    _fold(b, _sum_rows, x, out, dims)


def _sum_rows(b: ProgramBuilder, x: TensorView, out: TensorView) -> None:
    """Low words are added as halves of 16 bits, whose sums of 32 bits lose no carry."""
    count = x.sizes[-1]
    if count > _LONGEST_SUM:
        _sum_long_rows(b, x, out)
        return
    low, high = (low_words(x), high_words(x)) if is_long(x) else (x, None)
    lower, upper, top = (b.temp(DType.INT32, out.sizes) for _ in range(3))
    b.vector("sum_low_halves", (low,), lower)
    b.vector("sum_high_halves", (low,), upper)
    if high is not None:
        b.vector("int_sum", (high,), top)
    else:
        b.vector("sum_sign_words", (low,), top)
    join_halves(b, out, lower, upper, top)


def join_halves(
    b: ProgramBuilder, out: TensorView, lower: TensorView, upper: TensorView, top: TensorView
) -> None:
    """out = lower + 2¹⁶·upper + 2³²·top, for unsigned sums of at most 2¹⁶ halves."""
    b.vector("halves_low", (lower, upper), low_words(out))
    b.vector("halves_high", (lower, upper, top), high_words(out))


def _sum_long_rows(b: ProgramBuilder, x: TensorView, out: TensorView) -> None:
    """Rows in parts of the length that `_sum_rows` can add; then the parts' sums."""
    full, rest = divmod(x.sizes[-1], _LONGEST_SUM)
    sums = b.temp(DType.INT64, (*x.sizes[:-1], full + bool(rest)))
    parts = x.sliced(-1, 0, full * _LONGEST_SUM).split(-1, (full, _LONGEST_SUM))
    _sum_rows(b, parts, sums.sliced(-1, 0, full).inserted(-1))
    if rest:
        tail = x.sliced(-1, full * _LONGEST_SUM, rest)
        _sum_rows(b, tail, sums.sliced(-1, full, 1))
    _sum_rows(b, sums, out)


def scatter_add(
    b: ProgramBuilder, source: TensorView, index: TensorView, out: TensorView, dim: int
) -> None:
    """out[i with i[dim] replaced by index[i]] += source[i], modulo 2⁶⁴.

    SCATTER adds int32: the halves of the low words and the high words are added up apart.
    """
    at = dim % source.rank
    for start in range(0, source.sizes[at], _LONGEST_SUM):
        count = min(source.sizes[at] - start, _LONGEST_SUM)
        part, places = (view.sliced(at, start, count) for view in (source, index))
        low, high = long.pair(b, part)
        sums = [b.temp(DType.INT32, out.sizes) for _ in range(3)]
        for total, program, word in zip(
            sums, ("low_half", "high_half", "move"), (low, low, high), strict=True
        ):
            words = b.temp(DType.INT32, part.sizes)
            b.vector(program, (word,), words)
            b.fill(total, 0)
            b.scatter(words, places, total, at, accumulate=True)
        added = b.temp(DType.INT64, out.sizes)
        join_halves(b, added, *sums)
        long.add(b, out, out, added)


# ---------------------------------------------------------------------- extremes
def extreme(
    b: ProgramBuilder, name: str, x: TensorView, out: TensorView, dims: Sequence[int]
) -> None:
    """The largest ("amax") or smallest ("amin") int64 over `dims`; out has size 1 in them."""

    def rows(b: ProgramBuilder, x: TensorView, out: TensorView) -> None:
        low, high = low_words(out), high_words(out)
        b.vector(f"int_{name}", (high_words(x),), high)
        wide = b.expanded(high, x.sizes)
        b.vector(f"long_{name}_low", (low_words(x), high_words(x), wide), low)
        b.vector("bits_xor_imm", (low,), low, 1 << 31)

    _fold(b, rows, x, out, dims)


def index_of(b: ProgramBuilder, x: TensorView, best: TensorView, out: TensorView, dim: int) -> None:
    """Where along `dim` x first equals `best`."""
    found = long.compared(b, "eq", x.sizes, x, best)
    b.vector("first_set", (found.with_last([dim]),), out.with_last([dim]))
