# SPDX-License-Identifier: Apache-2.0
"""Programs whose result is one element per innermost row."""

from __future__ import annotations

from driver.isa.assembler import Assembler, Family, Value
from driver.isa.micro import MicroOp, Reduce

FAMILY = Family("reductions")
program = FAMILY.program


def _identity(p: Assembler) -> Value:
    return p.src1


FAMILY.add("sum", _identity, "Σ src1", sources=1, reduce=Reduce.FADD)
FAMILY.add("amax", _identity, "the largest src1", sources=1, reduce=Reduce.FMAX)
FAMILY.add("amin", _identity, "the smallest src1", sources=1, reduce=Reduce.FMIN)
FAMILY.add("int_sum", _identity, "Σ src1 modulo 2³²", sources=1, reduce=Reduce.IADD)
FAMILY.add("int_amax", _identity, "the largest src1, int32", sources=1, reduce=Reduce.IMAX)
FAMILY.add("int_amin", _identity, "the smallest src1, int32", sources=1, reduce=Reduce.IMIN)


@program("Σ src1²", sources=1, reduce=Reduce.FADD)
def sum_squares(p: Assembler) -> Value:
    return p.mul(p.src1, p.src1)


@program("Σ (src1 − src2)", sources=2, reduce=Reduce.FADD)
def sum_differences(p: Assembler) -> Value:
    return p.sub(p.src1, p.src2)


@program("Σ (src1 − src2)²", sources=2, reduce=Reduce.FADD)
def sum_square_differences(p: Assembler) -> Value:
    difference = p.sub(p.src1, p.src2)
    return p.mul(difference, difference)


@program("the first index at which src1 equals src2 or is a NaN", sources=2, reduce=Reduce.IMIN)
def first_equal(p: Assembler) -> Value:
    ordered = p.op(MicroOp.FEQ, p.src1, p.src1)
    elsewhere = p.select(ordered, p.word(0x7FFF_FFFF), p.index)
    return p.select(p.op(MicroOp.FEQ, p.src1, p.src2), p.index, elsewhere)


@program("the first index at which src1 equals src2, int32", sources=2, reduce=Reduce.IMIN)
def int_first_equal(p: Assembler) -> Value:
    return p.select(p.op(MicroOp.IEQ, p.src1, p.src2), p.index, p.word(0x7FFF_FFFF))
