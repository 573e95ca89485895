# SPDX-License-Identifier: Apache-2.0
"""Powers. y·log x needs ten bits more than fp32 has: sums (high, low) of two numbers."""

from __future__ import annotations

import math

from driver.isa.assembler import Assembler, Family, Value
from driver.isa.micro import MicroOp
from driver.isa.programs import _math as m
from driver.isa.programs.functions import exp_of_sum, log_parts

FAMILY = Family("power")
program = FAMILY.program

_LN2_16 = 0.693145751953125
"""ln 2 to 16 bits after the point: its product with an exponent is exact."""
_LN2_REST = 1.428606765330187e-06
_THIRD_LOW = -9.934107758624577e-09
_ATANH_3 = (0.11709950119256973, 0.14273542165756226, 0.20000076293945312)
"""(atanh s − s − s³/3) / s⁵ in s² for |s| ≤ 0.1716: atanh to a relative 2^-36.8."""


def _sum(p: Assembler, a: Value, b: Value, low: Value) -> m.Pair:
    """a + b + low, for |a| ≥ |b| or a = 0 (Dekker's fast two-sum)."""
    high = p.add(a, b)
    return high, p.add(p.sub(b, p.sub(high, a)), low)


def _atanh_ratio(p: Assembler, f: Value) -> m.Pair:
    """2·s for s = f ÷ (2 + f)."""
    one = p.f(1.0)
    d = p.add(p.add(f, one), one)
    d_low = p.sub(f, p.sub(d, p.f(2.0)))
    y = m.minus_reciprocal(p, d)
    twice = p.add(f, f)
    minus_high = p.mul(twice, y)
    rest = p.fma(minus_high, d_low, p.fma(minus_high, d, twice))
    return p.neg(minus_high), p.neg(p.mul(rest, y))


def _log(p: Assembler, x: Value) -> m.Pair:
    """log x for 0 < x < ∞, to a relative 2^-34: k·log 2 + 2·atanh s."""
    k, f = log_parts(p, x)
    s, s_low = _atanh_ratio(p, f)
    # With S = 2·s, z = S²/4: 2·atanh s = S + S·z·(1/3 + z·P(z)).
    half, half_low = p.mul(s, p.f(0.5)), p.mul(s_low, p.f(0.5))
    z = m.product(p, half, half, (p.add(half, half), half_low))
    series = p.mul(z[0], p.horner(z[0], _ATANH_3))
    q = _sum(p, p.f(1 / 3), series, p.f(_THIRD_LOW))
    w = m.product(p, z[0], q[0], (z[0], q[1]), (z[1], q[0]))
    cube = m.product(p, s, w[0], (s, w[1]), (s_low, w[0]))
    whole = _sum(p, s, cube[0], p.add(s_low, cube[1]))
    low = p.fma(k, p.f(_LN2_REST), whole[1])
    return _sum(p, p.mul(k, p.f(_LN2_16)), whole[0], low)


def _parity(p: Assembler, y: Value) -> m.Pair:
    """(1 if y is an integer, 1 if it is an odd one). From 2²⁴ on all are even."""
    size = p.op(MicroOp.FMIN, p.abs(y), p.f(2.0**24))
    whole = p.op(MicroOp.F2I_TRUNC, size)
    integer = p.op(MicroOp.FEQ, p.op(MicroOp.I2F, whole), size)
    return integer, p.op(MicroOp.AND, whole, integer)


@program("src1 to the power of src2", sources=2)
def pow_(p: Assembler) -> Value:
    x, y = p.src1, p.src2
    size = p.abs(x)
    high, low = _log(p, size)
    # log |x| of 0 is −∞, of ∞ and NaN themselves. A bounded y leaves 1^∞ = e^(∞·0) at 1.
    high = p.select(p.op(MicroOp.FLT, size, p.word(m.INFINITY)), high, size)
    high = p.select(size, high, p.f(-math.inf))
    bounded = p.op(MicroOp.FMAX, p.op(MicroOp.FMIN, y, p.f(2.0**40)), p.f(-(2.0**40)))
    product, rest = m.product(p, bounded, high, (bounded, low))
    in_range = p.op(MicroOp.FLT, p.abs(product), p.f(128.0))
    rest = p.select(in_range, rest, p.f(0.0))

    integer, odd = _parity(p, y)
    sign = p.op(MicroOp.AND, p.op(MicroOp.SHL, odd, p.word(31)), x)
    power = exp_of_sum(p, product, rest, sign)
    below = p.op(MicroOp.FLT, x, p.f(0.0))
    finite = p.op(MicroOp.FLT, size, p.word(m.INFINITY))
    undefined = p.op(MicroOp.ILT, integer, p.op(MicroOp.AND, below, finite))
    power = p.select(undefined, p.word(m.NAN), power)
    one = p.op(MicroOp.OR, p.op(MicroOp.FEQ, x, p.f(1.0)), p.op(MicroOp.FEQ, y, p.f(0.0)))
    return p.select(one, p.f(1.0), power)
