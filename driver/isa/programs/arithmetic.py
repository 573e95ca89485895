# SPDX-License-Identifier: Apache-2.0
"""Programs of one or two primitives: moves, sums, products, quotients, conversions, integers."""

from __future__ import annotations

from driver.isa.assembler import Assembler, Family, Value
from driver.isa.micro import MicroOp

FAMILY = Family("arithmetic")
program = FAMILY.program


@program("src1; types of one kind convert as loads and stores do", sources=1)
def move(p: Assembler) -> Value:
    return p.src1


@program("imm0", sources=0, imms=("value",))
def constant(p: Assembler) -> Value:
    return p.imm(0)


@program("src1 + alpha·src2", sources=2, imms=("alpha",))
def add(p: Assembler) -> Value:
    return p.fma(p.src2, p.imm(0), p.src1)


@program("scale·src1 + offset", sources=1, imms=("scale", "offset"))
def affine(p: Assembler) -> Value:
    return p.fma(p.src1, p.imm(0), p.imm(1))


@program("src1·src2", sources=2)
def mul(p: Assembler) -> Value:
    return p.mul(p.src1, p.src2)


@program("src1·src2 + src3", sources=3)
def mul_add(p: Assembler) -> Value:
    return p.fma(p.src1, p.src2, p.src3)


@program("src1 ÷ src2", sources=2)
def div(p: Assembler) -> Value:
    return p.div(p.src1, p.src2)


@program("src1 ÷ divisor", sources=1, imms=("divisor",))
def div_imm(p: Assembler) -> Value:
    return p.div(p.src1, p.imm(0))


@program("dividend ÷ src1", sources=1, imms=("dividend",))
def imm_div(p: Assembler) -> Value:
    return p.div(p.imm(0), p.src1)


@program("√src1", sources=1)
def sqrt(p: Assembler) -> Value:
    return p.sqrt(p.src1)


@program("1 ÷ √src1", sources=1)
def rsqrt(p: Assembler) -> Value:
    return p.div(p.f(1.0), p.sqrt(p.src1))


@program("−src1", sources=1)
def neg(p: Assembler) -> Value:
    return p.neg(p.src1)


@program("|src1|", sources=1)
def abs_(p: Assembler) -> Value:
    return p.abs(p.src1)


@program("src1 + alpha·src2 modulo 2³²", sources=2, imms=("alpha",))
def int_add(p: Assembler) -> Value:
    return p.op(MicroOp.IADD, p.src1, p.op(MicroOp.IMUL, p.src2, p.imm(0)))


@program("scale·src1 + offset modulo 2³²", sources=1, imms=("scale", "offset"))
def int_affine(p: Assembler) -> Value:
    return p.op(MicroOp.IADD, p.op(MicroOp.IMUL, p.src1, p.imm(0)), p.imm(1))


@program("src1·src2 modulo 2³²", sources=2)
def int_mul(p: Assembler) -> Value:
    return p.op(MicroOp.IMUL, p.src1, p.src2)


@program("int32 to fp32", sources=1)
def int_to_float(p: Assembler) -> Value:
    return p.op(MicroOp.I2F, p.src1)


@program("fp32 to int32, towards 0", sources=1)
def float_to_int(p: Assembler) -> Value:
    return p.op(MicroOp.F2I_TRUNC, p.src1)


@program("start + step·index, int32", sources=0, imms=("start", "step"))
def int_range(p: Assembler) -> Value:
    return p.op(MicroOp.IADD, p.op(MicroOp.IMUL, p.index, p.imm(1)), p.imm(0))


@program("start + step·index, fp32", sources=0, imms=("start", "step"))
def float_range(p: Assembler) -> Value:
    return p.fma(p.op(MicroOp.I2F, p.index), p.imm(1), p.imm(0))
