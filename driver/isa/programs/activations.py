# SPDX-License-Identifier: Apache-2.0
"""Activation functions. One named after a 16-bit type is shorter, and for results of that type."""

from __future__ import annotations

from driver.isa.assembler import Assembler, Family, Value
from driver.isa.micro import MicroOp
from driver.isa.programs import _math as m
from driver.isa.programs.functions import exp_negative

FAMILY = Family("activations")
program = FAMILY.program


@program("src1 if above 0, else +0; NaN stays", sources=1)
def relu(p: Assembler) -> Value:
    return p.op(MicroOp.FMAX, p.src1, p.word(0))


_LARGEST = 3.4028234663852886e38


@program("src1 ÷ (1 + e^−src1)", sources=1)
def silu(p: Assembler) -> Value:
    # min(x, largest)·(1 or e^−|x|) ÷ (1 + e^−|x|): the quotient wants finite numbers. +∞ returns
    # as x − largest, which is below the quotient for every other x.
    x = p.src1
    e = exp_negative(p, m.negative_abs(p, x))
    factor = p.select(m.sign_of(p, x), e, p.f(1.0))
    largest = p.f(_LARGEST)
    minus_silu = m.minus_ratio(p, e, p.op(MicroOp.FMIN, x, largest), factor)
    return p.op(MicroOp.FMAX, p.mul(minus_silu, p.f(-1.0)), p.sub(x, largest))


_SHORT_SCALE = -36
"""(1 + e^−x)·2^-36 and its reciprocal are normal numbers for x from −110 to 40."""


def _minus_scaled_denominator(p: Assembler, x: Value, coefficients: tuple[float, ...]) -> Value:
    """−(1 + e^−x)·2^-36."""
    x = p.op(MicroOp.FMIN, p.op(MicroOp.FMAX, x, p.f(-110.0)), p.f(40.0))
    e = m.minus_exp_of_minus(p, x, coefficients, _SHORT_SCALE)
    return p.sub(e, p.f(2.0**_SHORT_SCALE))


def _silu_of(p: Assembler, reciprocal: Value) -> Value:
    return p.mul(p.mul(reciprocal, p.f(2.0**_SHORT_SCALE)), p.src1)


@program("src1 ÷ (1 + e^−src1), to 2^-8.1", sources=1)
def silu_bf16(p: Assembler) -> Value:
    minus_d = _minus_scaled_denominator(p, p.src1, m.EXP_2)
    y = m.reciprocal_guess(p, minus_d)
    # Newton's step from below, raised to the middle of its error.
    return _silu_of(p, p.mul(y, p.fma(minus_d, y, p.f(2.0013))))


@program("src1 ÷ (1 + e^−src1), to 2^-12.3", sources=1)
def silu_fp16(p: Assembler) -> Value:
    minus_d = _minus_scaled_denominator(p, p.src1, m.EXP_3)
    y = m.reciprocal_guess(p, minus_d)
    error = p.fma(minus_d, y, p.f(1.0))
    return _silu_of(p, p.fma(p.fma(error, error, error), y, y))
