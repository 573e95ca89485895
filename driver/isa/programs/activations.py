# SPDX-License-Identifier: Apache-2.0
"""Activation functions. Those for 16-bit results are shorter, and good to half an ULP of those."""

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
