# SPDX-License-Identifier: Apache-2.0
"""Relatives of exp and log: other bases, and near 0 and 1 without cancellation."""

from __future__ import annotations

import math

from driver.isa.assembler import Assembler, Family, Value
from driver.isa.micro import MicroOp
from driver.isa.programs import _math as m
from driver.isa.programs.functions import (
    exp_negative,
    log_near_1,
    log_parts,
    scale_twice,
    with_special_logs,
)

FAMILY = Family("exponentials")
program = FAMILY.program

_EXP2_6 = (0.00015326496213674545, 0.001339081209152937, 0.009618505835533142,
           0.05550359934568405, 0.24022647738456726, 0.6931471824645996, 1.0)  # fmt: skip
"""2ʳ on ±0.5, the last coefficient fixed: relative error 2^-28.3."""


@program("2^src1", sources=1)
def exp2(p: Assembler) -> Value:
    x = p.op(MicroOp.FMIN, p.op(MicroOp.FMAX, p.src1, p.f(-151.0)), p.f(128.5))
    magic = p.f(m.ROUND - 1)
    rounded = p.add(x, magic)
    value = p.horner(p.sub(x, p.sub(rounded, magic)), _EXP2_6)
    return scale_twice(p, value, m.shifted_exponent(p, rounded))


def half_expm1(p: Assembler, x: Value) -> Value:
    """(e^x − 1) ÷ 2 = 2^(k−1)·h + 2^(k−1) − ½ with e^x = 2^k·(1 + h), for k to 128."""
    exponent, r = m.exp_reduced(p, x, -1)
    power = p.op(MicroOp.IADD, exponent, p.f(1.0))
    head = p.fma(p.mul(r, r), p.horner(r, m.EXPM1_7), r)
    return p.fma(power, head, p.sub(power, p.f(0.5)))


@program("e^src1 − 1", sources=1)
def expm1(p: Assembler) -> Value:
    x = p.op(MicroOp.FMIN, p.op(MicroOp.FMAX, p.src1, p.f(-20.0)), p.f(89.0))
    half = half_expm1(p, x)  # subnormals do not bear the half
    itself = p.op(MicroOp.FLT, p.abs(p.src1), p.f(2.0**-26))
    return p.select(itself, p.src1, p.add(half, half))


@program("the logarithm of src1 to base 2", sources=1)
def log2(p: Assembler) -> Value:
    k, f = log_parts(p, p.src1)
    return p.fma(log_near_1(p, f), p.f(math.log2(math.e)), with_special_logs(p, p.src1, k))


_LOG10_2_HIGH = 0.3010300099849701
_LOG10_2_LOW = -1.432098883924482e-08


@program("the logarithm of src1 to base 10", sources=1)
def log10(p: Assembler) -> Value:
    k, f = log_parts(p, p.src1)
    low = p.fma(log_near_1(p, f), p.f(math.log10(math.e)), p.mul(k, p.f(_LOG10_2_LOW)))
    return p.fma(with_special_logs(p, p.src1, k), p.f(_LOG10_2_HIGH), low)


def log1p_of(p: Assembler, x: Value, special: Value) -> Value:
    """log(1 + x): the logarithm of the rounded sum, and what rounding took, to first order.

    x is below ∞; the sum `special` decides about special values.
    """
    one = p.f(1.0)
    u = p.add(x, one)
    k, f = log_parts(p, u)
    lost = p.sub(x, p.sub(u, one))
    exponent = p.op(MicroOp.SHL, p.op(MicroOp.F2I, k), p.word(23))
    small = p.op(MicroOp.IMIN, exponent, p.word(126 << 23))  # where it is less, nothing was lost
    f = p.fma(lost, p.op(MicroOp.ISUB, one, small), f)
    low = log_near_1(p, f, p.fma(k, p.f(m.LN2_LOW), f))
    return p.fma(with_special_logs(p, special, k), p.f(m.LN2_HIGH), low)


@program("log(1 + src1)", sources=1)
def log1p(p: Assembler) -> Value:
    not_zero = p.op(MicroOp.SHL, p.src1, p.word(1))
    finite = p.op(MicroOp.FMIN, p.src1, p.f(m.LARGEST))
    return p.select(not_zero, log1p_of(p, finite, p.add(p.src1, p.f(1.0))), p.src1)


@program("log(1 + e^src1)", sources=1)
def softplus(p: Assembler) -> Value:
    e = exp_negative(p, m.negative_abs(p, p.src1))
    rest = log1p_of(p, e, p.add(e, p.f(1.0)))
    return p.add(p.op(MicroOp.FMAX, p.src1, p.f(0.0)), rest)
