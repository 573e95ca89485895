# SPDX-License-Identifier: Apache-2.0
"""Inverse circular functions, hyperbolic functions and their inverses, in fp32."""

from __future__ import annotations

import math

from driver.isa.assembler import Assembler, Family, Value
from driver.isa.micro import MicroOp
from driver.isa.programs import _math as m
from driver.isa.programs.exponentials import half_expm1, log1p_of
from driver.isa.programs.functions import HALF_PI, scale_twice

FAMILY = Family("trigonometry")
program = FAMILY.program

_ATAN_4 = (0.0805370882153511, -0.13877741992473602, 0.1997772455215454, -0.3333294987678528)
"""(atan t − t) / t³ in t² up to tan(π/8): atan t to a relative 2^-25.5."""
_TAN_EIGHTH = math.sqrt(2) - 1


def _arc(p: Assembler, rise: Value, run: Value) -> Value:
    """The angle from −π to π of the point (run, rise); zeros and infinities as C99's atan2.

    atan of smaller ÷ larger, or of (smaller − larger) ÷ (smaller + larger), plus or minus that from
    a multiple of π/4, which is added in two parts: one rounding.
    """
    y, x = p.abs(rise), p.abs(run)
    small, large = _bounded(p, p.op(MicroOp.FMIN, y, x), p.op(MicroOp.FMAX, y, x))
    far = p.op(MicroOp.FLT, p.mul(large, p.f(_TAN_EIGHTH)), small)
    ratio, lost = _quotient(p, small, large, far)
    square = p.mul(ratio, ratio)
    angle = p.add(ratio, p.fma(p.mul(ratio, square), p.horner(square, _ATAN_4), lost))
    one = p.f(1.0)
    turn = p.select(far, p.f(-0.5), p.f(0.0))  # −1 is a right angle
    steep, behind = p.op(MicroOp.FLT, x, y), m.sign_of(p, run)
    turn = p.select(steep, p.sub(p.f(-1.0), turn), turn)
    turn = p.select(behind, p.sub(p.sub(p.f(-1.0), one), turn), turn)
    flip = p.op(MicroOp.XOR, p.op(MicroOp.SHL, steep, p.word(31)), behind)
    angle = p.fma(turn, p.f(-HALF_PI[1]), p.op(MicroOp.XOR, angle, flip))
    return p.op(MicroOp.OR, p.fma(turn, p.f(-HALF_PI[0]), angle), m.sign_of(p, rise))


def _quotient(p: Assembler, small: Value, large: Value, far: Value) -> m.Pair:
    """small ÷ large, or where `far` their difference ÷ their sum, and what rounding took."""
    total = p.add(small, large)
    upper = p.select(far, p.sub(small, large), small)
    lower = p.select(far, total, large)
    ratio = p.div(upper, lower)
    rest = p.fma(p.neg(ratio), lower, upper)
    none = p.f(0.0)
    rest = p.add(rest, p.select(far, p.sub(small, p.add(upper, large)), none))
    beyond = p.select(far, p.sub(small, p.sub(total, large)), none)
    rest = p.fma(p.neg(ratio), beyond, rest)
    return ratio, p.div(rest, lower)


def _bounded(p: Assembler, small: Value, large: Value) -> m.Pair:
    """Two numbers of the same ratio whose sum is finite and, if it was not a NaN, not 0."""
    one, infinity = p.f(1.0), p.word(m.INFINITY)
    half = p.select(p.op(MicroOp.FLT, one, large), p.f(0.5), one)
    infinite = p.op(MicroOp.FEQ, large, infinity)
    both = p.select(p.op(MicroOp.FEQ, small, infinity), one, p.f(0.0))
    small = p.select(infinite, both, p.mul(small, half))
    zero = p.op(MicroOp.FEQ, large, p.f(0.0))
    large = p.select(p.op(MicroOp.OR, infinite, zero), one, p.mul(large, half))
    return small, large


def _leg(p: Assembler, x: Value) -> Value:
    """√(1 − x²)."""
    one = p.f(1.0)
    inner = p.op(MicroOp.FLT, p.abs(x), p.f(0.5))
    outer = p.mul(p.sub(one, x), p.add(one, x))
    return p.sqrt(p.select(inner, p.fma(p.neg(x), x, one), outer))


@program("the angle of the point (src2, src1)", sources=2)
def atan2(p: Assembler) -> Value:
    return _arc(p, p.src1, p.src2)


@program("the angle whose tangent is src1", sources=1)
def atan(p: Assembler) -> Value:
    return _arc(p, p.src1, p.f(1.0))


@program("the angle whose sine is src1", sources=1)
def asin(p: Assembler) -> Value:
    return _arc(p, p.src1, _leg(p, p.src1))


@program("the angle whose cosine is src1", sources=1)
def acos(p: Assembler) -> Value:
    return _arc(p, _leg(p, p.src1), p.src1)


def _reduced(p: Assembler, x: Value) -> tuple[Value, Value, Value]:
    """x = n·π/2 + r + low: n in the low bits of the first, low beyond the last bit of r."""
    high, middle, last = (p.f(-part) for part in HALF_PI)
    rounded = p.fma(x, p.f(2 / math.pi), p.f(m.ROUND))
    n = p.sub(rounded, p.f(m.ROUND))
    first = p.fma(n, high, x)  # exact
    second, rest = m.product(p, n, middle)
    r = p.add(first, second)
    back = p.sub(r, first)
    lost = p.add(p.sub(first, p.sub(r, back)), p.sub(second, back))
    return rounded, r, p.fma(n, last, p.add(lost, rest))


@program("sin src1 ÷ cos src1", sources=1)
def tan(p: Assembler) -> Value:
    quadrant, r, low = _reduced(p, p.src1)
    z = p.mul(r, r)
    odd = p.op(MicroOp.AND, quadrant, p.word(1))
    cube, tail = p.mul(r, z), p.horner(z, m.SIN_3)
    sine = p.fma(cube, tail, r)
    sine_low = p.fma(cube, tail, p.sub(r, sine))
    cosine, cosine_low = m.horner_pair(p, z, m.COS_5)
    upper, lower = p.select(odd, cosine, sine), p.select(odd, p.neg(sine), cosine)
    ratio = p.div(upper, lower)
    rest = p.add(p.fma(p.neg(ratio), lower, upper), p.select(odd, cosine_low, sine_low))
    rest = p.fma(p.neg(ratio), p.select(odd, p.neg(sine_low), cosine_low), rest)
    value = p.add(ratio, p.fma(low, p.fma(ratio, ratio, p.f(1.0)), p.div(rest, lower)))
    not_zero = p.op(MicroOp.SHL, p.src1, p.word(1))
    return p.select(not_zero, value, p.src1)


# ---------------------------------------------------------------------- hyperbolic
@program("(e^src1 − e^−src1) ÷ 2", sources=1)
def sinh(p: Assembler) -> Value:
    # Below ¼ a polynomial, the odd part of that for e^x − 1. With h = (e^|x| − 1) ÷ 2:
    # h + h ÷ (1 + 2h). From |x| = 10 on it is e^|x| ÷ 2.
    x = p.abs(p.src1)
    half = half_expm1(p, p.op(MicroOp.FMIN, x, p.f(10.0)))
    whole = p.add(p.add(half, half), p.f(1.0))
    value = p.select(
        p.op(MicroOp.FLT, x, p.f(10.0)), p.add(half, p.div(half, whole)), _half_exp(p, x)
    )
    square = p.mul(x, x)
    inner = p.fma(p.mul(p.src1, square), p.horner(square, m.EXPM1_7[0:5:2]), p.src1)
    value = p.op(MicroOp.OR, value, m.sign_of(p, p.src1))
    return p.select(p.op(MicroOp.FLT, x, p.f(0.25)), inner, value)


def _half_exp(p: Assembler, x: Value) -> Value:
    """e^x ÷ 2 for x from 0 on."""
    exponent, r = m.exp_reduced(p, p.op(MicroOp.FMIN, x, p.f(_ABOVE_SINH)), -2)
    return scale_twice(p, p.horner(r, m.EXP_6), exponent)


_ABOVE_SINH = 90.0
"""e^x ÷ 2 is beyond the largest number."""


@program("(e^src1 + e^−src1) ÷ 2", sources=1)
def cosh(p: Assembler) -> Value:
    half = _half_exp(p, p.abs(p.src1))
    return p.add(half, p.div(p.f(0.25), half))


_BIG = 2.0**24
"""From here on √(x² ± 1) is x."""


def _log1p_or_log(p: Assembler, big: Value, x: Value, z: Value) -> Value:
    """log(1 + z), or log(2x) where `big`."""
    finite = p.op(MicroOp.FMIN, p.select(big, x, z), p.f(m.LARGEST))
    special = p.add(p.select(big, x, z), p.f(1.0))
    return p.add(log1p_of(p, finite, special), p.select(big, p.f(m.LN2_HIGH), p.f(0.0)))


@program("the number whose sinh is src1", sources=1)
def asinh(p: Assembler) -> Value:
    x, one = p.abs(p.src1), p.f(1.0)
    square = p.mul(x, x)
    z = p.add(x, p.div(square, p.add(one, p.sqrt(p.add(square, one)))))
    value = _log1p_or_log(p, p.op(MicroOp.FLT, p.f(_BIG), x), x, z)
    itself = p.op(MicroOp.FLT, x, p.f(2.0**-26))
    return p.select(itself, p.src1, p.op(MicroOp.OR, value, m.sign_of(p, p.src1)))


@program("the number from 0 on whose cosh is src1", sources=1)
def acosh(p: Assembler) -> Value:
    x, above = p.src1, p.sub(p.src1, p.f(1.0))
    z = p.add(above, p.sqrt(p.fma(above, above, p.add(above, above))))
    z = p.select(p.op(MicroOp.FLT, x, p.f(1.0)), p.word(m.NAN), z)
    return _log1p_or_log(p, p.op(MicroOp.FLT, p.f(_BIG), x), x, z)


@program("the number whose tanh is src1", sources=1)
def atanh(p: Assembler) -> Value:
    x = p.abs(p.src1)
    z = p.div(p.add(x, x), p.sub(p.f(1.0), x))
    value = log1p_of(p, p.op(MicroOp.FMIN, z, p.f(m.LARGEST)), p.add(z, p.f(1.0)))
    signed = p.op(MicroOp.OR, p.mul(value, p.f(0.5)), m.sign_of(p, p.src1))
    return p.select(p.op(MicroOp.FLT, x, p.f(2.0**-26)), p.src1, signed)
