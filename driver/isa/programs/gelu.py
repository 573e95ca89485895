# SPDX-License-Identifier: Apache-2.0
"""GELU, by the error function and by tanh, for fp32 results and for 16-bit ones."""

from __future__ import annotations

from driver.isa.assembler import Assembler, Family, Value
from driver.isa.micro import MicroOp
from driver.isa.programs import _math as m
from driver.isa.programs.activations import gated, sigmoid_16
from driver.isa.programs.functions import exp_negative_16

FAMILY = Family("gelu")
program = FAMILY.program

_SCALE = 60
_MILLS_SHIFT = 2.34375
_MILLS_10 = (-7.34093482606113e-05, 0.00023708288790658116, 8.15655857877573e-06,
             -0.0012275923509150743, 0.0016476778546348214, 0.004362423904240131,
             -0.013361584395170212, -0.021866241469979286, 0.09964951127767563,
             0.4049663245677948, 0.6975326538085938)  # fmt: skip
"""(a + s)·e^(a²/2)·Φ(−a) in (s − a) / (s + a), s = 2.34375, a from 0 to 14: relative 2^-28.4."""


def _half_square(p: Assembler, a: Value) -> m.Pair:
    """−a²/2 exactly, as a sum."""
    half, minus_half = p.mul(a, p.f(0.5)), p.mul(a, p.f(-0.5))
    return p.mul(a, minus_half), p.fma(a, minus_half, p.mul(a, half))


@program("src1·Φ(src1), Φ the normal distribution: src1·(1 + erf(src1 ÷ √2)) ÷ 2", sources=1)
def gelu_erf(p: Assembler) -> Value:
    a = p.op(MicroOp.FMIN, p.abs(p.src1), p.f(15.0))
    high, low = _half_square(p, a)
    exponent, bell = m.exp_pair(p, high, low, _SCALE)
    shift = p.f(_MILLS_SHIFT)
    minus_s = m.minus_reciprocal(p, p.add(a, shift))
    # The polynomial's variable with one correction: its slope would double the error.
    difference = p.sub(a, shift)
    u = p.mul(difference, minus_s)
    u = p.fma(p.fma(u, a, p.fma(u, shift, difference)), minus_s, u)
    mills = m.horner_pair(p, u, _MILLS_10)
    n, n_low = m.product(p, bell[0], mills[0], (bell[0], mills[1]), (bell[1], mills[0]))
    n, n_low = m.product(p, a, n, (a, n_low))
    q = p.mul(n, minus_s)
    remainder = p.add(p.fma(q, a, p.fma(q, shift, n)), n_low)
    power = p.op(MicroOp.IADD, exponent, p.f(1.0))
    scaled = p.mul(p.fma(remainder, minus_s, q), power)
    # −|x|·Φ(−|x|). As in x·Φ(x), −∞·0 is a NaN, which the addend brings in; else it is a zero.
    addend = p.mul(p.op(MicroOp.FMIN, p.src1, p.word(0)), p.f(0.0))
    below = p.fma(scaled, p.f(2.0**-_SCALE), addend)
    return p.select(m.sign_of(p, p.src1), below, p.add(p.src1, below))


_TANH_1 = 1.5957691216057308
_TANH_1_HIGH = 1.5957698822021484
_TANH_1_LOW = -7.605964356116601e-07
"""2·√(2/π) to fp32, and as a sum: with 20 bits after the point, 1_HIGH less the factor is exact."""
_TANH_3 = 0.07135481387376785
_TANH_3_LOW = 2.3988324659995897e-09
"""0.044715·2·√(2/π)."""
_TANH_LEAST, _TANH_MOST = -10.9, 5.078125
"""The argument is −109.8 and 17.4 there, where the share is 0 and 1."""


def _tanh_argument(p: Assembler, x: Value) -> m.Pair:
    """2·√(2/π)·(x + 0.044715·x³) as a sum: its exponential needs more than 24 bits."""
    minus_x = p.neg(x)
    minus_z = p.mul(x, minus_x)
    z_low = p.fma(x, x, minus_z)
    first = p.f(_TANH_1_HIGH)
    factor = p.fma(minus_z, p.f(-_TANH_3), first)
    low = p.fma(minus_z, p.f(-_TANH_3), p.sub(first, factor))
    low = p.fma(minus_z, p.f(-_TANH_3_LOW), low)
    low = p.add(p.fma(z_low, p.f(_TANH_3), low), p.f(_TANH_1_LOW))
    high = p.mul(x, factor)
    rest = p.fma(x, factor, p.mul(minus_x, factor))
    return high, p.fma(x, low, rest)


@program("src1·(1 + tanh(√(2/π)·(src1 + 0.044715·src1³))) ÷ 2", sources=1)
def gelu_tanh(p: Assembler) -> Value:
    x = p.op(MicroOp.FMAX, p.op(MicroOp.FMIN, p.src1, p.f(_TANH_MOST)), p.f(_TANH_LEAST))
    return gated(p, p.src1, _TANH_MOST, *_tanh_argument(p, x))


_LOG_TAIL_9 = (-9.828939884215515e-10, 7.679562941120821e-08, -2.623786031108466e-06,
               5.1805076509481296e-05, -0.0006606177194043994, 0.005797720979899168,
               -0.03687622770667076, -0.3186635673046112, -0.7974856495857239,
               -0.6931918859481812)  # fmt: skip
"""log Φ(−a) on [0, 14.5]: error 2^-14.4."""


@program("gelu_erf to 2^-12.8, for 16-bit results", sources=1)
def gelu_erf_16(p: Assembler) -> Value:
    a = p.op(MicroOp.FMIN, p.abs(p.src1), p.f(14.5))
    tail = exp_negative_16(p, p.horner(a, _LOG_TAIL_9))
    share = p.select(m.sign_of(p, p.src1), tail, p.sub(p.f(1.0), tail))
    return p.mul(share, p.src1)


@program("gelu_tanh to 2^-12.4, for 16-bit results", sources=1)
def gelu_tanh_16(p: Assembler) -> Value:
    x = p.src1
    v = p.mul(x, p.fma(p.mul(x, x), p.f(_TANH_3), p.f(_TANH_1)))
    return p.mul(sigmoid_16(p, v), x)
