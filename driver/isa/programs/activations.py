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


@program("src1 ÷ (1 + e^−src1)", sources=1)
def silu(p: Assembler) -> Value:
    return m.gated(p, p.src1, exp_negative(p, m.negative_abs(p, p.src1)))


_SHORT_SCALE = -36
"""(1 + e^−x)·2^-36 and its reciprocal are normal numbers for x from −110 to 40."""


def _minus_denominator(p: Assembler, x: Value, coefficients: tuple[float, ...]) -> Value:
    """−(1 + e^−x)·2^-36."""
    x = p.op(MicroOp.FMIN, p.op(MicroOp.FMAX, x, p.f(-110.0)), p.f(40.0))
    e = m.minus_exp_of_minus(p, x, coefficients, _SHORT_SCALE)
    return p.sub(e, p.f(2.0**_SHORT_SCALE))


def sigmoid_fp16(p: Assembler, x: Value) -> Value:
    """1 ÷ (1 + e^−x) to 2^-12.3; 0 below −104."""
    minus_d = _minus_denominator(p, x, m.EXP_3)
    y = m.minus_reciprocal_guess(p, minus_d)
    error = p.fma(minus_d, y, p.f(1.0))
    return p.mul(p.fma(p.fma(error, error, error), y, y), p.f(2.0**_SHORT_SCALE))


def sigmoid_bf16(p: Assembler, x: Value) -> Value:
    """1 ÷ (1 + e^−x) to 2^-8.1; 0 below −104."""
    minus_d = _minus_denominator(p, x, m.EXP_2)
    y = m.minus_reciprocal_guess(p, minus_d)
    # Newton's step, which ends below 1/d, raised to the middle of its error.
    newton = p.mul(y, p.fma(minus_d, y, p.f(2.0013)))
    return p.mul(newton, p.f(2.0**_SHORT_SCALE))


@program("silu to 2^-12.3, for fp16 results", sources=1)
def silu_fp16(p: Assembler) -> Value:
    return p.mul(sigmoid_fp16(p, p.src1), p.src1)


@program("silu to 2^-8.1, for bf16 results", sources=1)
def silu_bf16(p: Assembler) -> Value:
    return p.mul(sigmoid_bf16(p, p.src1), p.src1)
