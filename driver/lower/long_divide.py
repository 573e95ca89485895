# SPDX-License-Identifier: Apache-2.0
"""Division of int64 with remainder, towards 0 or −∞, by quotients in fp32.

Dividend and divisor are taken as −|x| and −|y|, which int64 always holds. With u = 2⁻²⁴ the fp32
quotient of a rest r is within 3·u·|r ÷ y| + 1 of r ÷ y, so each step that subtracts it leaves at
most 2⁻²²·|r| + |y|: from 2⁶³ three steps leave less than two divisors, and not less than minus one.
"""

from __future__ import annotations

from driver.isa import DType
from driver.lower import long
from driver.lower.builder import ProgramBuilder
from driver.lower.long_views import high_words, low_words
from driver.runtime.views import TensorView

_STEPS = 3


def divide(
    b: ProgramBuilder,
    out: TensorView,
    x: TensorView,
    y: TensorView | int,
    *,
    remainder: bool,
    floor: bool,
) -> None:
    """x ÷ y rounded towards 0, or towards −∞ with `floor`; or the remainder.

    Integers of any type that broadcast to the int64 result. Unspecified where y is 0.
    """
    if isinstance(y, int):
        if floor and y > 0 and not y & (y - 1):
            _by_power_of_two(b, out, x, y, remainder=remainder)
            return
        y = long.number(b, y)
    x, y = (b.expanded(long.widened(b, view), out.sizes) for view in (x, y))
    quotient, rest = _by_steps(b, out.sizes, _minus_size(b, x), _minus_size(b, y))
    differ = b.temp(DType.UINT8, out.sizes)
    b.vector("signs_differ", (high_words(x), high_words(y)), differ)
    apart = long.compared(b, "ne", out.sizes, rest, 0)
    b.vector("bits_and", (apart, differ), apart)
    signs = long.compared(b, "ge", out.sizes, x, 0) if remainder else differ
    value = _negated_where(b, signs, rest if remainder else quotient)
    if floor:
        zero = long.number(b, 0)
        change = b.temp(DType.INT64, out.sizes)
        long.choose(b, change, apart, y if remainder else long.number(b, -1), zero)
        long.add(b, out, value, change)
    else:
        b.copy(value, out)


def _by_power_of_two(
    b: ProgramBuilder, out: TensorView, x: TensorView, y: int, *, remainder: bool
) -> None:
    """Division towards −∞ drops bits of two's complement, and these are the remainder."""
    if remainder:
        long.bitwise(b, "bits_and", out, x, long.number(b, y - 1))
    else:
        long.shift_right(b, out, x, long.number(b, y.bit_length() - 1))


def _minus_size(b: ProgramBuilder, x: TensorView) -> TensorView:
    """−|x| in fresh memory."""
    return _negated_where(b, long.compared(b, "gt", x.sizes, x, 0), x)


def _negated_where(b: ProgramBuilder, condition: TensorView, x: TensorView) -> TensorView:
    """−x where the condition holds, else x, in fresh memory."""
    made = b.temp(DType.INT64, x.sizes)
    long.negate(b, made, x)
    long.choose(b, made, condition, made, x)
    return made


def _by_steps(
    b: ProgramBuilder, sizes: tuple[int, ...], x: TensorView, y: TensorView
) -> tuple[TensorView, TensorView]:
    """(x ÷ y towards 0, x less its product with y) for x ≤ 0 and y < 0."""
    divisor, dividend = (b.temp(DType.FP32, sizes) for _ in range(2))
    quotient, part, product = (b.temp(DType.INT64, sizes) for _ in range(3))
    rest = x
    long.to_float(b, divisor, y)
    b.fill(quotient, 0)
    for _ in range(_STEPS):
        long.to_float(b, dividend, rest)
        for name, word in (("low", low_words(part)), ("high", high_words(part))):
            b.vector(f"quotient_to_long_{name}", (dividend, divisor), word)
        long.multiply(b, product, part, y)
        long.subtract(b, rest, rest, product)
        long.add(b, quotient, quotient, part)
    # A rest beyond 0 was divided once too often; one that still holds the divisor once too seldom.
    for relation, limit, step in (("gt", long.number(b, 0), -1), ("le", y, 1)):
        wrong = long.compared(b, relation, sizes, rest, limit)
        long.choose(b, part, wrong, long.number(b, step), long.number(b, 0))
        long.multiply(b, product, part, y)
        long.subtract(b, rest, rest, product)
        long.add(b, quotient, quotient, part)
    return quotient, rest
