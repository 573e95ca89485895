# SPDX-License-Identifier: Apache-2.0
"""GELU, by the error function and by tanh, for fp32 results and for 16-bit ones."""

from __future__ import annotations

from driver.isa.assembler import Assembler, Family, Value
from driver.isa.micro import MicroOp
from driver.isa.programs import _math as m
from driver.isa.programs.activations import sigmoid_fp16
from driver.isa.programs.functions import exp_negative, exp_negative_16

FAMILY = Family("gelu")
program = FAMILY.program

_SCALE = 60
_MILLS_SHIFT = 2.25
_MILLS_10 = (-8.961516141425818e-05, -0.0006846063770353794, -0.0019061064813286066,
             -0.0027210789266973734, -0.003527193795889616, -0.0014470613095909357,
             0.005854187998920679, -0.02524453215301037, -0.016672706231474876,
             0.44732213020324707, 1.125)  # fmt: skip
"""(a + 2.25)·e^(a²/2)·Φ(−a) in −2a / (a + 2.25), a from 0 to 14: relative 2^-27.3."""


def _both_sides(p: Assembler, negative: Value) -> Value:
    """gelu(x) from gelu(−|x|): they differ by x."""
    return p.select(m.sign_of(p, p.src1), negative, p.add(p.src1, negative))


def _minus_abs(p: Assembler) -> Value:
    """−|src1|; but a large number for +∞, so that only −∞·0 is a NaN, as in x·Φ(x)."""
    return m.negative_abs(p, p.op(MicroOp.FMIN, p.src1, p.f(m.LARGEST)))


def _half_square(p: Assembler, a: Value) -> tuple[Value, Value]:
    """(h, l) with h + l = −a²/2 exactly."""
    half = p.mul(a, p.f(0.5))
    high = p.mul(a, p.mul(a, p.f(-0.5)))
    return high, p.mul(p.fma(a, half, high), p.f(-1.0))


@program("src1·Φ(src1), Φ the normal distribution: src1·(1 + erf(src1 ÷ √2)) ÷ 2", sources=1)
def gelu_erf(p: Assembler) -> Value:
    x = _minus_abs(p)
    a = p.op(MicroOp.FMIN, p.abs(x), p.f(15.0))
    high, low = _half_square(p, a)
    exponent, r = m.exp_reduced(p, high, _SCALE)
    bell = p.op(MicroOp.IADD, p.horner(p.add(r, low), m.EXP_6), exponent)
    shift = p.f(_MILLS_SHIFT)
    minus_s = m.minus_reciprocal(p, p.add(a, shift))
    mills = p.horner(p.mul(p.add(a, a), minus_s), _MILLS_10)
    numerator = p.mul(x, p.mul(p.mul(bell, p.f(2.0**-_SCALE)), mills))
    q = p.mul(numerator, minus_s)
    remainder = p.fma(q, a, p.fma(q, shift, numerator))
    return _both_sides(p, p.mul(p.fma(remainder, minus_s, q), p.f(-1.0)))


_TANH_LINEAR_HIGH = 1.59576904296875
_TANH_LINEAR_LOW = 7.8600e-8
_TANH_CUBIC = 0.07135481627260025
_TANH_CUBIC_LOW = 0.0
_TANH_1 = 1.5957691216057308
_TANH_1_HIGH = 1.5957698822021484
_TANH_1_LOW = -7.605964356116601e-07
"""2·√(2/π) to fp32, and as a sum: with 20 bits after the point, 1_HIGH less the factor is exact."""
_TANH_3 = 0.07135481387376785
_TANH_3_LOW = 2.3988324659995897e-09
"""0.044715·2·√(2/π)."""


def _tanh_argument(p: Assembler, a: Value) -> tuple[Value, Value]:
    """−2·√(2/π)·(a + 0.044715·a³) as a sum: its exponential needs more than 24 bits."""
    minus_a = p.neg(a)
    minus_z = p.mul(a, minus_a)
    z_low = p.fma(a, a, minus_z)
    first = p.f(_TANH_1_HIGH)
    factor = p.fma(minus_z, p.f(-_TANH_3), first)
    low = p.fma(minus_z, p.f(-_TANH_3), p.sub(first, factor))
    low = p.fma(minus_z, p.f(-_TANH_3_LOW), low)
    low = p.add(p.fma(z_low, p.f(_TANH_3), low), p.f(_TANH_1_LOW))
    high = p.mul(minus_a, factor)
    rest = p.fma(minus_a, factor, p.mul(a, factor))
    return high, p.fma(minus_a, low, rest)


@program("src1·(1 + tanh(√(2/π)·(src1 + 0.044715·src1³))) ÷ 2", sources=1)
def gelu_tanh(p: Assembler) -> Value:
    a = p.op(MicroOp.FMIN, p.abs(p.src1), p.f(11.0))
    return m.gated(p, p.src1, exp_negative(p, *_tanh_argument(p, a)))


_LOG_TAIL_9 = (-9.828939884215515e-10, 7.679562941120821e-08, -2.623786031108466e-06,
               5.1805076509481296e-05, -0.0006606177194043994, 0.005797720979899168,
               -0.03687622770667076, -0.3186635673046112, -0.7974856495857239,
               -0.6931918859481812)  # fmt: skip
"""log Φ(−a) on [0, 14.5]: error 2^-14.4."""


@program("gelu_erf to 2^-12.9, for 16-bit results", sources=1)
def gelu_erf_16(p: Assembler) -> Value:
    a = p.op(MicroOp.FMIN, p.abs(p.src1), p.f(14.5))
    tail = exp_negative_16(p, p.horner(a, _LOG_TAIL_9))
    share = p.select(m.sign_of(p, p.src1), tail, p.sub(p.f(1.0), tail))
    return p.mul(share, p.src1)


@program("gelu_tanh to 2^-12.3, for 16-bit results", sources=1)
def gelu_tanh_16(p: Assembler) -> Value:
    x = p.src1
    v = p.mul(x, p.fma(p.mul(x, x), p.f(_TANH_3), p.f(_TANH_1)))
    return p.mul(sigmoid_fp16(p, v), x)
