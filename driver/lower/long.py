# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of int64: each operation a few passes over low and high words, modulo 2⁶⁴.

Operands are integers of any type and broadcast to the result. The result may be an operand's own
memory: a word is overwritten only when no later pass reads it.
"""

from __future__ import annotations

from driver.isa import DType
from driver.lower.builder import ProgramBuilder
from driver.lower.long_views import high_words, is_long, low_words, split, words
from driver.runtime.views import TensorView

Pair = tuple[TensorView, TensorView]
"""Low and high words of one tensor."""


def pair(b: ProgramBuilder, view: TensorView) -> Pair:
    """The words of an integer tensor; a narrow one is its own low word, its sign the high one."""
    if is_long(view):
        return low_words(view), high_words(view)
    sign = b.temp(DType.INT32, view.sizes)
    if view.dtype is DType.UINT8:
        b.fill(sign, 0)
    else:
        b.vector("sign_word", (view,), sign)
    return view, sign


def widened(b: ProgramBuilder, view: TensorView) -> TensorView:
    """The view if it is int64, else its integers as int64 in fresh memory."""
    if is_long(view):
        return view
    fresh = b.temp(DType.INT64, view.sizes)
    b.vector("move", (view,), fresh)
    return fresh


def sign(b: ProgramBuilder, out: TensorView, x: TensorView) -> None:
    """−1, 0 or 1"""
    b.vector("long_sign", pair(b, x), out)


def number(b: ProgramBuilder, value: int) -> TensorView:
    """An int64 without dimensions in fresh memory."""
    fresh = b.temp(DType.INT64, ())
    b.fill(fresh, value)
    return fresh


# ---------------------------------------------------------------------- sums and products
def add(b: ProgramBuilder, out: TensorView, x: TensorView, y: TensorView) -> None:
    """x + y"""
    _linear(b, out, x, y, "carry", "int_add3", 1)


def subtract(b: ProgramBuilder, out: TensorView, x: TensorView, y: TensorView) -> None:
    """x − y"""
    _linear(b, out, x, y, "unsigned_less", "int_sub_sub", -1)


def _linear(
    b: ProgramBuilder,
    out: TensorView,
    x: TensorView,
    y: TensorView,
    carry: str,
    high: str,
    sign: int,
) -> None:
    (x_low, x_high), (y_low, y_high) = pair(b, x), pair(b, y)
    carried = b.temp(DType.UINT8, out.sizes)
    b.vector(carry, (x_low, y_low), carried)
    b.vector(high, (x_high, y_high, carried), high_words(out))
    b.vector("int_add", (x_low, y_low), low_words(out), sign)


def add_scaled(
    b: ProgramBuilder, out: TensorView, x: TensorView, y: TensorView, alpha: int
) -> None:
    """x + alpha·y"""
    if alpha == -1:
        subtract(b, out, x, y)
        return
    if alpha != 1:
        scaled = b.temp(DType.INT64, y.sizes)
        multiply(b, scaled, y, number(b, alpha))
        y = scaled
    add(b, out, x, y)


def affine(b: ProgramBuilder, out: TensorView, x: TensorView, scale: int, offset: int) -> None:
    """scale·x + offset"""
    if scale == -1:
        subtract(b, out, number(b, offset), x)
        return
    if scale != 1:
        multiply(b, out, x, number(b, scale))
        x = out
    if offset or x is not out:
        low, high = pair(b, x)
        b.vector("long_add_imm_high", (low, high), high_words(out), *split(offset))
        b.vector("int_affine", (low,), low_words(out), 1, split(offset)[0])


def multiply(b: ProgramBuilder, out: TensorView, x: TensorView, y: TensorView) -> None:
    """x·y: the high word of low·low, and both products of a low and a high word."""
    (x_low, x_high), (y_low, y_high) = pair(b, x), pair(b, y)
    carried, sums = (b.temp(DType.INT32, out.sizes) for _ in range(2))
    b.vector("high_product", (x_low, y_low), carried)
    b.vector("int_mul_add", (x_high, y_low, carried), sums)
    b.vector("int_mul_add", (x_low, y_high, sums), high_words(out))
    b.vector("int_mul", (x_low, y_low), low_words(out))


def negate(b: ProgramBuilder, out: TensorView, x: TensorView) -> None:
    """−x"""
    low, high = pair(b, x)
    b.vector("long_neg_high", (low, high), high_words(out))
    b.vector("int_affine", (low,), low_words(out), -1, 0)


def absolute(b: ProgramBuilder, out: TensorView, x: TensorView) -> None:
    """|x|; of −2⁶³ itself"""
    low, high = pair(b, x)
    b.vector("long_abs_low", (low, high), low_words(out))
    b.vector("long_abs_high", (low, high), high_words(out))


# ---------------------------------------------------------------------- order and choice
_RELATIONS = {
    "lt": ("unsigned_less", "long_less", False),
    "ge": ("unsigned_less", "long_not_less", False),
    "gt": ("unsigned_less", "long_less", True),
    "le": ("unsigned_less", "long_not_less", True),
    "eq": ("int_equal", "long_equal", False),
    "ne": ("int_equal", "long_not_equal", False),
}
"""ATen's name → program of the low words, of the high words, operands exchanged."""

_WITH_NUMBER = {
    "lt": "long_less_imm",
    "ge": "long_greater_equal_imm",
    "gt": "long_greater_imm",
    "le": "long_less_equal_imm",
    "eq": "long_equal_imm",
    "ne": "long_not_equal_imm",
}


def compare(
    b: ProgramBuilder, relation: str, out: TensorView, x: TensorView, y: TensorView | int
) -> None:
    """Truth values of "lt", "le", "gt", "ge", "eq" or "ne"."""
    if isinstance(y, int):
        b.vector(_WITH_NUMBER[relation], pair(b, x), out, *split(y))
        return
    low, high, swapped = _RELATIONS[relation]
    (x_low, x_high), (y_low, y_high) = (pair(b, v) for v in ((y, x) if swapped else (x, y)))
    below = b.temp(DType.UINT8, out.sizes)
    b.vector(low, (x_low, y_low), below)
    b.vector(high, (x_high, y_high, below), out)


def compared(
    b: ProgramBuilder, relation: str, sizes: tuple[int, ...], x: TensorView, y: TensorView | int
) -> TensorView:
    """The truth values of `compare` in fresh memory."""
    truth = b.temp(DType.UINT8, sizes)
    compare(b, relation, truth, x, y)
    return truth


def choose(
    b: ProgramBuilder, out: TensorView, condition: TensorView, x: TensorView, y: TensorView
) -> None:
    """x where the condition, of bytes, has a bit set, else y: both words in one pass."""
    choices = tuple(words(widened(b, view)) for view in (x, y))
    b.vector("where", (condition.inserted(-1), *choices), words(out))


def pick(
    b: ProgramBuilder, relation: str, out: TensorView, x: TensorView, y: TensorView | int
) -> None:
    """x where the relation holds between x and y, else y."""
    holds = compared(b, relation, out.sizes, x, y)
    choose(b, out, holds, x, number(b, y) if isinstance(y, int) else y)


# ---------------------------------------------------------------------- bits
def bitwise(b: ProgramBuilder, program: str, out: TensorView, x: TensorView, y: TensorView) -> None:
    """A program of two words' bits, on both words in one pass."""
    b.vector(program, (words(widened(b, x)), words(widened(b, y))), words(out))


def shift_left(b: ProgramBuilder, out: TensorView, x: TensorView, count: TensorView) -> None:
    """x·2^count; 0 where the count is not one of 0 to 63"""
    places = shift_counts(b, count)
    low, high = pair(b, x)
    b.vector("long_shift_left_high", (low, high, places), high_words(out))
    b.vector("int_shift_left", (low, places), low_words(out))


def shift_right(b: ProgramBuilder, out: TensorView, x: TensorView, count: TensorView) -> None:
    """x ÷ 2^count, rounded down; 0 or −1 where the count is not one of 0 to 63"""
    places = shift_counts(b, count)
    low, high = pair(b, x)
    b.vector("long_shift_right_low", (low, high, places), low_words(out))
    b.vector("int_shift_right", (high, places), high_words(out))


def shift_counts(b: ProgramBuilder, count: TensorView) -> TensorView:
    """The counts as bytes; 64 for what is not one of 0 to 63."""
    places = b.temp(DType.UINT8, count.sizes)
    b.vector("shift_count", pair(b, count), places)
    return places


# ---------------------------------------------------------------------- ranges, conversions
def arrange(b: ProgramBuilder, out: TensorView, start: int, step: int) -> None:
    """out[i] = start + step·i"""
    start_words, (step_low, step_high) = split(start), split(step)
    b.vector("long_range_low", (), low_words(out), *start_words, step_low)
    b.vector("long_range_high", (), high_words(out), *start_words, step_low, step_high)


def truth(b: ProgramBuilder, out: TensorView, x: TensorView) -> None:
    """1 where x is not 0, else 0"""
    b.vector("long_truth", pair(b, x), out)


def to_float(b: ProgramBuilder, out: TensorView, x: TensorView) -> None:
    """x as fp32, rounded once, then as the result's type"""
    b.vector("long_to_float", pair(b, x), out)


def from_float(b: ProgramBuilder, out: TensorView, x: TensorView) -> None:
    """x towards 0; beyond the range the nearest int64, of NaN 0"""
    b.vector("float_to_long_low", (x,), low_words(out))
    b.vector("float_to_long_high", (x,), high_words(out))
