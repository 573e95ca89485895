# SPDX-License-Identifier: Apache-2.0
"""Elementary functions in fp32. Their accuracy and special cases: docs/numerics.md."""

from __future__ import annotations

import math

from driver.isa.assembler import Assembler, Family, Value
from driver.isa.micro import MicroOp
from driver.isa.programs import _math as m

FAMILY = Family("functions")
program = FAMILY.program

_BELOW_EXP = -104.0
"""eˣ is less than half the least subnormal."""
_ABOVE_EXP = 89.0
"""eˣ is beyond the largest number."""
_SCALE = 60
"""eˣ·2^60 is a normal number for every x from _BELOW_EXP to 0."""


def exp_negative(p: Assembler, x: Value) -> Value:
    """e^x for x ≤ 0."""
    x = p.op(MicroOp.FMAX, x, p.f(_BELOW_EXP))
    exponent, r = m.exp_reduced(p, x, _SCALE)
    scaled = p.op(MicroOp.IADD, p.horner(r, m.EXP_6), exponent)
    return p.mul(scaled, p.f(2.0**-_SCALE))


def exp_negative_16(p: Assembler, x: Value) -> Value:
    """e^x to 2^-13.6, for x ≤ 0."""
    x = p.op(MicroOp.FMAX, x, p.f(_BELOW_EXP))
    exponent, r = m.exp_reduced(p, x, _SCALE, exact=False)
    scaled = p.op(MicroOp.IADD, p.horner(r, m.EXP_3), exponent)
    return p.mul(scaled, p.f(2.0**-_SCALE))


def scale_twice(p: Assembler, value: Value, exponent: Value, sign: Value | None = None) -> Value:
    """value·2^(k+1) for the exponent field of 2^k, k from −152 to 127; `sign` inverts its sign bit.

    As two factors: neither subnormal results nor 2^128·0.9 are one integer addition away.
    """
    first = p.op(MicroOp.IMAX, exponent, p.word(-100 << 23))
    second = p.op(MicroOp.IADD, p.op(MicroOp.ISUB, exponent, first), p.f(2.0))
    if sign is not None:
        second = p.op(MicroOp.XOR, second, sign)
    return p.mul(p.op(MicroOp.IADD, value, first), second)


def exp_of_sum(
    p: Assembler, x: Value, low: Value | None = None, sign: Value | None = None
) -> Value:
    """e^(x + low), `low` beyond the last bit of x; `sign` inverts its sign bit."""
    x = p.op(MicroOp.FMIN, p.op(MicroOp.FMAX, x, p.f(_BELOW_EXP)), p.f(_ABOVE_EXP))
    exponent, r = m.exp_reduced(p, x, -1, low=low)
    return scale_twice(p, p.horner(r, m.EXP_6), exponent, sign)


@program("e^src1", sources=1)
def exp(p: Assembler) -> Value:
    return exp_of_sum(p, p.src1)


@program("(e^src1 − e^−src1) ÷ (e^src1 + e^−src1)", sources=1)
def tanh(p: Assembler) -> Value:
    return m.from_table(p, p.src1, "tanh")


_SQRT_HALF = 0x3F35_04F3


def log_parts(p: Assembler, x: Value) -> tuple[Value, Value]:
    """x = 2^k·(1 + f), 1 + f from √½ to √2: (k as fp32, f). Nonsense unless 0 < x < ∞."""
    subnormal = p.op(MicroOp.FLT, x, p.f(2.0**-126))
    normal = p.mul(x, p.select(subnormal, p.f(2.0**24), p.f(1.0)))
    bias = p.select(subnormal, p.word(_SQRT_HALF + (24 << 23)), p.word(_SQRT_HALF))
    above = p.op(MicroOp.ISUB, normal, bias)
    k = p.op(MicroOp.I2F, p.op(MicroOp.SRA, above, p.word(23)))
    fraction = p.op(MicroOp.AND, above, p.word(0x7F_FFFF))
    return k, p.sub(p.op(MicroOp.IADD, fraction, p.word(_SQRT_HALF)), p.f(1.0))


def log_near_1(p: Assembler, f: Value, start: Value | None = None) -> Value:
    """log(1 + f) − f + start for 1 + f from √½ to √2; `start` is f if nothing else is added."""
    return p.fma(p.mul(f, f), p.horner(f, m.LOG_10), start or f)


def with_special_logs(p: Assembler, x: Value, k: Value) -> Value:
    """k, or what replaces it to give log x: ∞ and NaN for themselves, −∞ for 0, NaN below."""
    k = p.select(p.op(MicroOp.FLT, x, p.word(m.INFINITY)), k, x)
    at_most_0 = p.select(p.op(MicroOp.SHL, x, p.word(1)), p.word(m.NAN), p.f(-math.inf))
    return p.select(p.op(MicroOp.FLE, x, p.word(0)), at_most_0, k)


@program("the natural logarithm of src1", sources=1)
def log(p: Assembler) -> Value:
    k, f = log_parts(p, p.src1)
    low = log_near_1(p, f, p.fma(k, p.f(m.LN2_LOW), f))
    return p.fma(with_special_logs(p, p.src1, k), p.f(m.LN2_HIGH), low)


_TWO_OVER_PI = 2 / math.pi
HALF_PI = (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15)
"""π/2 as the sum of three fp32 numbers, 1e-23 off."""
_R_LIMIT = 0.795
"""π/4, and what the rounding of 2/π adds up to |x| = 2¹⁶·π."""


def _quadrants(p: Assembler, x: Value) -> tuple[Value, Value]:
    """x = n·π/2 + r: n in the low bits, r always within ±0.795 (NaN for ±∞ and NaN)."""
    rounded = p.fma(x, p.f(_TWO_OVER_PI), p.f(m.ROUND))
    n = p.sub(rounded, p.f(m.ROUND))
    r = x
    for part in HALF_PI:
        r = p.fma(n, p.f(-part), r)
    r = p.op(MicroOp.FMAX, p.op(MicroOp.FMIN, r, p.f(_R_LIMIT)), p.f(-_R_LIMIT))
    return rounded, r


def quarter_wave(p: Assembler, quadrant: Value, r: Value) -> Value:
    """sin(quadrant·π/2 + r) from the two low bits of `quadrant`."""
    z = p.mul(r, r)
    odd = p.op(MicroOp.AND, quadrant, p.word(1))
    value = p.select(odd, m.cosine(p, z), m.sine(p, r, z))
    sign = m.sign_of(p, p.op(MicroOp.SHL, quadrant, p.word(30)))
    return p.op(MicroOp.XOR, value, sign)


@program("sin src1", sources=1)
def sin(p: Assembler) -> Value:
    quadrant, r = _quadrants(p, p.src1)
    not_zero = p.op(MicroOp.SHL, p.src1, p.word(1))
    return p.select(not_zero, quarter_wave(p, quadrant, r), p.src1)


@program("cos src1", sources=1)
def cos(p: Assembler) -> Value:
    quadrant, r = _quadrants(p, p.src1)
    return quarter_wave(p, p.op(MicroOp.IADD, quadrant, p.word(1)), r)


@program("the error function of src1", sources=1)
def erf(p: Assembler) -> Value:
    # In segment 0 the last column is 1, which makes the slope 1 + 0.128…: one rounding less.
    return m.from_table(p, p.src1, "erf", extra=True)
