# SPDX-License-Identifier: Apache-2.0
"""Passes of a radix sort by one bit, and of placing elements that a mask chooses."""

from __future__ import annotations

from driver.isa.assembler import Assembler, Family, Value
from driver.isa.micro import MicroOp
from driver.isa.programs import _math as m

FAMILY = Family("order")
program = FAMILY.program


def _bit(p: Assembler) -> Value:
    """Bit `shift` of the int32 src1 as a number from 0 to 2^32 − 1 that orders alike."""
    unsigned = p.op(MicroOp.XOR, p.src1, p.word(m.SIGN))
    return p.op(MicroOp.AND, p.op(MicroOp.SRL, unsigned, p.imm(0)), p.word(1))


@program(
    "1.0 where bit `shift` of src1 is 0, else 0.0; the sign bit counts inverted",
    sources=1,
    imms=("shift",),
)
def radix_zero(p: Assembler) -> Value:
    return p.select(_bit(p), p.f(0.0), p.f(1.0))


@program(
    "where the element goes: src2 is how many zeros end here in bit `shift` of src1, src3 how many"
    " there are in all",
    sources=3,
    imms=("shift",),
)
def radix_place(p: Assembler) -> Value:
    zeros, every = (p.op(MicroOp.F2I_TRUNC, value) for value in (p.src2, p.src3))
    behind = p.op(MicroOp.IADD, p.op(MicroOp.ISUB, p.index, zeros), every)
    before = p.op(MicroOp.ISUB, zeros, p.word(1))
    return p.select(_bit(p), behind, before)


@program("src2 to int32 where src1 has a bit set, else 0", sources=2)
def place_where(p: Assembler) -> Value:
    return p.select(p.src1, p.op(MicroOp.F2I_TRUNC, p.src2), p.word(0))


@program("1.0 where src1 has a bit set, else 0.0", sources=1)
def truth_to_float(p: Assembler) -> Value:
    return p.select(p.src1, p.f(1.0), p.f(0.0))
