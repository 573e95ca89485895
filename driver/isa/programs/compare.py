# SPDX-License-Identifier: Apache-2.0
"""Comparisons, choices and logic. Truth values are int32: 0, or 1."""

from __future__ import annotations

from driver.isa.assembler import Assembler, Family, Value
from driver.isa.micro import MicroOp

FAMILY = Family("compare")
program = FAMILY.program


def _not(p: Assembler, a: Value) -> Value:
    """The other truth value."""
    return p.op(MicroOp.XOR, a, p.word(1))


def truth(p: Assembler, a: Value) -> Value:
    """1 where an integer has a bit set."""
    return p.select(a, p.word(1), p.word(0))


@program("the larger of src1 and src2", sources=2)
def maximum(p: Assembler) -> Value:
    return p.op(MicroOp.FMAX, p.src1, p.src2)


@program("the smaller of src1 and src2", sources=2)
def minimum(p: Assembler) -> Value:
    return p.op(MicroOp.FMIN, p.src1, p.src2)


@program("src1 within low and high: min(max(src1, low), high)", sources=1, imms=("low", "high"))
def clamp(p: Assembler) -> Value:
    return p.op(MicroOp.FMIN, p.op(MicroOp.FMAX, p.src1, p.imm(0)), p.imm(1))


@program("the larger of src1 and src2, int32", sources=2)
def int_maximum(p: Assembler) -> Value:
    return p.op(MicroOp.IMAX, p.src1, p.src2)


@program("the smaller of src1 and src2, int32", sources=2)
def int_minimum(p: Assembler) -> Value:
    return p.op(MicroOp.IMIN, p.src1, p.src2)


@program("src1 within low and high, int32", sources=1, imms=("low", "high"))
def int_clamp(p: Assembler) -> Value:
    return p.op(MicroOp.IMIN, p.op(MicroOp.IMAX, p.src1, p.imm(0)), p.imm(1))


@program("src1 < src2", sources=2)
def less(p: Assembler) -> Value:
    return p.op(MicroOp.FLT, p.src1, p.src2)


@program("src1 ≤ src2", sources=2)
def less_equal(p: Assembler) -> Value:
    return p.op(MicroOp.FLE, p.src1, p.src2)


@program("src1 = src2", sources=2)
def equal(p: Assembler) -> Value:
    return p.op(MicroOp.FEQ, p.src1, p.src2)


@program("src1 ≠ src2, true with a NaN", sources=2)
def not_equal(p: Assembler) -> Value:
    return _not(p, p.op(MicroOp.FEQ, p.src1, p.src2))


@program("src1 < src2, int32", sources=2)
def int_less(p: Assembler) -> Value:
    return p.op(MicroOp.ILT, p.src1, p.src2)


@program("src1 ≤ src2, int32", sources=2)
def int_less_equal(p: Assembler) -> Value:
    return _not(p, p.op(MicroOp.ILT, p.src2, p.src1))


@program("src1 = src2, int32", sources=2)
def int_equal(p: Assembler) -> Value:
    return p.op(MicroOp.IEQ, p.src1, p.src2)


@program("src1 ≠ src2, int32", sources=2)
def int_not_equal(p: Assembler) -> Value:
    return _not(p, p.op(MicroOp.IEQ, p.src1, p.src2))


@program("src1 has a bit set", sources=1)
def int_truth(p: Assembler) -> Value:
    return truth(p, p.src1)


@program("src1 is not ±0, as fp32", sources=1)
def float_truth(p: Assembler) -> Value:
    return _not(p, p.op(MicroOp.FEQ, p.src1, p.word(0)))


@program("src1 has no bit set", sources=1)
def logical_not(p: Assembler) -> Value:
    return _not(p, truth(p, p.src1))


@program("both have a bit set", sources=2)
def logical_and(p: Assembler) -> Value:
    return p.op(MicroOp.AND, truth(p, p.src1), truth(p, p.src2))


@program("one has a bit set", sources=2)
def logical_or(p: Assembler) -> Value:
    return truth(p, p.op(MicroOp.OR, p.src1, p.src2))


@program("just one has a bit set", sources=2)
def logical_xor(p: Assembler) -> Value:
    return p.op(MicroOp.XOR, truth(p, p.src1), truth(p, p.src2))


@program("src2 where src1 has a bit set, else src3", sources=3)
def where(p: Assembler) -> Value:
    return p.select(p.src1, p.src2, p.src3)


@program("the word `value` where src2 has a bit set, else src1", sources=2, imms=("value",))
def masked_fill(p: Assembler) -> Value:
    return p.select(p.src2, p.imm(0), p.src1)
