# SPDX-License-Identifier: Apache-2.0
"""Activation functions. A program with the suffix of a 16-bit type is shorter and serves
results of that type."""

from __future__ import annotations

from driver.isa.assembler import Assembler, Family, Value
from driver.isa.micro import MicroOp
from driver.isa.programs import _math as m

FAMILY = Family("activations")
program = FAMILY.program


@program("src1 if above 0, else +0; NaN stays", sources=1)
def relu(p: Assembler) -> Value:
    return p.op(MicroOp.FMAX, p.src1, p.word(0))


_SCALE = 60
_GONE = -110.0
"""x·e^x rounds to −0 below."""


def gated(p: Assembler, x: Value, minus_v: Value, low: Value | None = None) -> Value:
    """x ÷ (1 + e^−v) for a v of x's sign, given −|v| as minus_v + low.

    As min(x, largest)·(1 or e) ÷ (1 + e) with e = e^−|v|, for the quotient wants finite numbers.
    Where x < 0, e is 2^60 times itself till the last rounding, and 0 below _GONE: −∞·0 is a NaN as
    in torch. +∞ comes back as x − largest, which is below the quotient for every other x.
    """
    exponent, r = m.exp_reduced(p, p.op(MicroOp.FMAX, minus_v, p.f(_GONE)), _SCALE, low=low)
    scaled = p.op(MicroOp.IADD, p.horner(r, m.EXP_6), exponent)
    unscale, one, largest = p.f(2.0**-_SCALE), p.f(1.0), p.f(m.LARGEST)
    negative = m.sign_of(p, x)
    kept = p.select(p.op(MicroOp.FLT, p.f(_GONE), minus_v), scaled, p.f(0.0))
    factor = p.select(negative, kept, one)
    finite = p.op(MicroOp.FMIN, x, largest)
    minus_quotient = m.minus_ratio(p, p.mul(scaled, unscale), finite, factor)
    quotient = p.mul(minus_quotient, p.select(negative, p.f(-(2.0**-_SCALE)), p.f(-1.0)))
    return p.op(MicroOp.FMAX, quotient, p.sub(x, largest))


@program("src1 ÷ (1 + e^−src1)", sources=1)
def silu(p: Assembler) -> Value:
    return gated(p, p.src1, m.negative_abs(p, p.src1))


SIGMOID_16_SCALE = 1.1851851940155029
SIGMOID_16_OFFSET = 244.5625
"""32/27 to fp32. x from −97.5 on gives 129 and more, where segments of width 1 begin."""
_SIGMOID_16_LEAST = -98.0


def sigmoid_16(p: Assembler, x: Value) -> Value:
    """1 ÷ (1 + e^−x) to 2^-12.4, or 2^-149 where that is more; 0 below −97.5, where x·e^x is below
    half the least bf16 number.
    """
    x = p.op(MicroOp.FMAX, x, p.f(_SIGMOID_16_LEAST))
    y = p.fma(x, p.f(SIGMOID_16_SCALE), p.f(SIGMOID_16_OFFSET))
    return m.from_table(p, y, "sigmoid_16")


@program("silu to 2^-12.4, for 16-bit results", sources=1)
def silu_16(p: Assembler) -> Value:
    return p.mul(sigmoid_16(p, p.src1), p.src1)
