# SPDX-License-Identifier: Apache-2.0
"""Pieces that several programs are made of: range reductions, polynomials, bounded quotients.

Polynomials are minimax fits in the stated norm, rounded to fp32 one coefficient at a time, lowest
power first, the others fitted again (tests/minimax.py is the tool, tests/test_minimax.py repeats
the fits). The accuracy of a program is in docs/numerics.md.
"""

from __future__ import annotations

import math

from driver.isa.assembler import Assembler, Value
from driver.isa.micro import MicroOp
from driver.isa.tables import TABLE_NUMBER, TABLES

SIGN = 0x8000_0000
NAN = 0x7FC0_0000
INFINITY = 0x7F80_0000
LARGEST = 3.4028234663852886e38
_FRACTION_BITS = 23

LOG2_E = math.log2(math.e)
LN2_HIGH = 0.693147182464599609375
"""ln 2 to fp32: x − k·LN2_HIGH is exact for the k nearest to x / ln 2. The rest is LN2_LOW."""
LN2_LOW = -1.9046542121259336e-09

ROUND = 1.5 * 2.0**_FRACTION_BITS
"""Adding it rounds a number below 2²² to an integer, which is then in the sum's low bits."""

EXP_6 = (0.0013821196043863893, 0.008368666283786297, 0.04166825860738754,
         0.1666652113199234, 0.4999999403953552, 1.0, 1.0)  # fmt: skip
"""eʳ on ±0.34665, the last two coefficients fixed: relative error 2^-28.3."""
EXP_3 = (0.16566815972328186, 0.504965603351593, 1.000164270401001, 0.9999279975891113)
"""eʳ on ±0.34665: relative error 2^-13.7."""


SIN_3 = (-0.00019507463730406016, 0.008332104422152042, -0.16666653752326965)
"""(sin r − r) / r³ in r² on ±0.795: sin r to a relative 2^-27.8."""
COS_5 = (2.4429418772342615e-05, -0.001388729433529079, 0.04166664555668831, -0.5, 1.0)
"""cos r in r² on ±0.795, the last two coefficients fixed: relative error 2^-32.7."""

LOG_10 = (-0.07660098373889923, 0.12930086255073547, -0.13239949941635132, 0.14177395403385162,
          -0.16608871519565582, 0.20002207159996033, -0.2500160336494446, 0.33333322405815125,
          -0.49999988079071045)  # fmt: skip
"""(log(1 + f) − f) / f² on [√½ − 1, √2 − 1]: log(1 + f) to a relative 2^-27.8."""

EXPM1_7 = (0.0001976100029423833, 0.001393231563270092, 0.008333547040820122, 0.04166649281978607,
           0.1666666567325592, 0.5)  # fmt: skip
"""(eʳ − 1 − r) / r² on ±0.34665: eʳ − 1 to a relative 2^-31."""


def shifted_exponent(p: Assembler, rounded: Value) -> Value:
    """The integer in the low bits of a sum with ROUND, where an exponent field lies."""
    return p.op(MicroOp.SHL, rounded, p.word(_FRACTION_BITS))


def exp_reduced(
    p: Assembler, x: Value, offset: int, *, low: Value | None = None, exact: bool = True
) -> tuple[Value, Value]:
    """x + low = k·ln 2 + r with |r| ≤ ln 2 / 2: (2^(k+offset)'s exponent field, r).

    `low` lies beyond the last bit of x. Not `exact` costs an instruction less, takes no `low`, and
    leaves r with an error of |k|·2^-29.
    """
    magic = p.f(ROUND + offset)
    rounded = p.fma(x, p.f(LOG2_E), magic)
    k = p.sub(rounded, magic)
    r = p.fma(k, p.f(-LN2_HIGH), x)
    if low is not None:
        r = p.add(r, p.fma(k, p.f(-LN2_LOW), low))
    elif exact:
        r = p.fma(k, p.f(-LN2_LOW), r)
    return shifted_exponent(p, rounded), r


def exp_pair(p: Assembler, x: Value, low: Value, offset: int) -> tuple[Value, Pair]:
    """e^(x + low) = 2^k·(high + low): (2^(k+offset)'s exponent field, the sum)."""
    magic = p.f(ROUND + offset)
    rounded = p.fma(x, p.f(LOG2_E), magic)
    k = p.sub(rounded, magic)
    first, second = p.fma(k, p.f(-LN2_HIGH), x), p.fma(k, p.f(-LN2_LOW), low)
    r = p.add(first, second)
    lost = p.sub(second, p.sub(r, first))
    high, rest = horner_pair(p, r, EXP_6)
    return shifted_exponent(p, rounded), (high, p.fma(lost, high, rest))


Pair = tuple[Value, Value]
"""A sum of two numbers, the second beyond the last bit of the first."""


def product(p: Assembler, a: Value, b: Value, *more: Pair) -> Pair:
    """a·b plus the small products in `more`."""
    high = p.mul(a, b)
    low = p.fma(a, b, p.neg(high))
    for left, right in more:
        low = p.fma(left, right, low)
    return high, low


def horner_pair(p: Assembler, x: Value, coefficients: tuple[float, ...]) -> Pair:
    """A polynomial whose last coefficient outweighs the rest, without the last rounding."""
    rest = p.horner(x, coefficients[:-1])
    last = p.f(coefficients[-1])
    high = p.fma(rest, x, last)
    return high, p.fma(rest, x, p.sub(last, high))


def sign_of(p: Assembler, x: Value) -> Value:
    """The sign bit, the others cleared."""
    return p.op(MicroOp.AND, x, p.word(SIGN))


def negative_abs(p: Assembler, x: Value) -> Value:
    """−|x|."""
    return p.op(MicroOp.OR, x, p.word(SIGN))


def minus_reciprocal_guess(p: Assembler, v: Value) -> Value:
    """−1/v for normal v whose reciprocal is normal, within 5.2 %: one integer subtraction.

    The pattern is a logarithm to first order, so its complement is the reciprocal's.
    """
    return p.op(MicroOp.ISUB, p.word(0x7EF3_4000 + SIGN), v)


def minus_reciprocal(p: Assembler, v: Value) -> Value:
    """−1/v for normal v whose reciprocal is normal: within 1.3 ULP."""
    y = minus_reciprocal_guess(p, v)
    error = p.fma(v, y, p.f(1.0))
    y = p.fma(p.fma(error, error, error), y, y)
    return p.fma(p.fma(v, y, p.f(1.0)), y, y)


def from_table(p: Assembler, x: Value, table: str, *, extra: bool = False) -> Value:
    """A table's polynomial in t = |x| − m: column 0 is −m, then come the coefficients from the
    constant on. With odd coefficients it has the sign of x.

    `extra`: the last column times t is added to the constant, which it must not round.
    """
    magnitude = p.segment(x, table)
    t = p.add(magnitude, p.column(magnitude, 0))
    top, *rest = range(TABLES[TABLE_NUMBER[table]].columns - 1 - extra, 1, -1)
    value = p.op(MicroOp.MOV, p.column(magnitude, top))
    for column in rest:
        value = p.fma(value, t, p.column(magnitude, column))
    if not extra:
        return p.fma(value, t, p.column(magnitude, 1))
    factor = p.op(MicroOp.MOV, p.column(magnitude, top + 1))
    return p.fma(value, t, p.fma(t, factor, p.column(magnitude, 1)))


def sine(p: Assembler, r: Value, z: Value) -> Value:
    """sin r for |r| ≤ 0.795, z = r²."""
    return p.fma(p.mul(r, z), p.horner(z, SIN_3), r)


def cosine(p: Assembler, z: Value) -> Value:
    """cos r for |r| ≤ 0.795, z = r²."""
    return p.horner(z, COS_5)
