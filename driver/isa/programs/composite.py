# SPDX-License-Identifier: Apache-2.0
"""Single passes of larger ops: what normalisations, attention, pooling and sorting are made of."""

from __future__ import annotations

from collections.abc import Callable

from driver.isa.assembler import Assembler, Family, Value
from driver.isa.micro import MicroOp, Reduce

FAMILY = Family("composite")
program = FAMILY.program


@program("beta·src1 + alpha·src2", sources=2, imms=("beta", "alpha"))
def axpby(p: Assembler) -> Value:
    return p.fma(p.src2, p.imm(1), p.mul(p.src1, p.imm(0)))


@program("beta·src1 + alpha·src2 modulo 2³²", sources=2, imms=("beta", "alpha"))
def int_axpby(p: Assembler) -> Value:
    left, right = (p.op(MicroOp.IMUL, p.src(at), p.imm(at)) for at in (0, 1))
    return p.op(MicroOp.IADD, left, right)


@program("src1 + alpha·src2, but src1 where that is a NaN", sources=2, imms=("alpha",))
def add_number(p: Assembler) -> Value:
    total = p.fma(p.src2, p.imm(0), p.src1)
    return p.select(p.op(MicroOp.FEQ, total, total), total, p.src1)


@program("src1²", sources=1)
def square(p: Assembler) -> Value:
    return p.mul(p.src1, p.src1)


@program("src3 − src1·src2", sources=3)
def sub_mul(p: Assembler) -> Value:
    return p.fma(p.neg(p.src1), p.src2, p.src3)


@program("src1·src2·src3", sources=3)
def mul_mul(p: Assembler) -> Value:
    return p.mul(p.mul(p.src1, p.src2), p.src3)


@program("(src1 − src2)·src3", sources=3)
def sub_scale(p: Assembler) -> Value:
    return p.mul(p.sub(p.src1, p.src2), p.src3)


@program("src1 − src2 − src3", sources=3)
def sub_sub(p: Assembler) -> Value:
    return p.sub(p.sub(p.src1, p.src2), p.src3)


@program("scale·(src1 + src2)", sources=2, imms=("scale",))
def add_scale(p: Assembler) -> Value:
    return p.mul(p.add(p.src1, p.src2), p.imm(0))


@program("1 ÷ √(scale·src1 + offset)", sources=1, imms=("scale", "offset"))
def rsqrt_affine(p: Assembler) -> Value:
    return p.div(p.f(1.0), p.sqrt(p.fma(p.src1, p.imm(0), p.imm(1))))


@program("1 ÷ src1, but 0 for +0", sources=1)
def reciprocal_or_zero(p: Assembler) -> Value:
    return p.select(p.src1, p.div(p.f(1.0), p.src1), p.f(0.0))


@program("src1 + src2 + src3 modulo 2³²", sources=3)
def int_add3(p: Assembler) -> Value:
    return p.op(MicroOp.IADD, p.op(MicroOp.IADD, p.src1, p.src2), p.src3)


@program("|src1|, int32", sources=1)
def int_abs(p: Assembler) -> Value:
    return p.op(MicroOp.IMAX, p.src1, p.op(MicroOp.ISUB, p.word(0), p.src1))


def _place(p: Assembler, index: Value, size: Value) -> Value:
    """The index, counted from the end where it is below 0; below 0 if it lies outside."""
    below = p.op(MicroOp.ILT, index, p.word(0))
    found = p.select(below, p.op(MicroOp.IADD, index, size), index)
    return p.select(p.op(MicroOp.ILT, found, size), found, p.word(-1))


@program(
    "index src1 of `size` places, from the end where below 0; below 0 where it is none of them",
    sources=1,
    imms=("size",),
)
def place(p: Assembler) -> Value:
    return _place(p, p.src1, p.imm(0))


@program(
    "place src1 of rows, and index src2 of `size` places in a row, as one place; below 0 where "
    "one of them is none",
    sources=2,
    imms=("size",),
)
def place_in_row(p: Assembler) -> Value:
    column = _place(p, p.src2, p.imm(0))
    outside = p.op(MicroOp.ILT, p.op(MicroOp.IMIN, p.src1, column), p.word(0))
    whole = p.op(MicroOp.IADD, p.op(MicroOp.IMUL, p.src1, p.imm(0)), column)
    return p.select(outside, p.word(-1), whole)


def _bitwise(op: MicroOp) -> Callable[[Assembler], Value]:
    return lambda p: p.op(op, p.src1, p.src2)


for _op in (MicroOp.AND, MicroOp.OR, MicroOp.XOR):
    FAMILY.add(f"bits_{_op.name.lower()}", _bitwise(_op), f"src1 {_op.name} src2", sources=2)


@program("src1 XOR mask", sources=1, imms=("mask",))
def bits_xor_imm(p: Assembler) -> Value:
    return p.op(MicroOp.XOR, p.src1, p.imm(0))


# ---------------------------------------------------------------------- comparisons with a number
def _compare(op: MicroOp, swapped: bool, negated: bool) -> Callable[[Assembler], Value]:
    def body(p: Assembler) -> Value:
        operands = (p.imm(0), p.src1) if swapped else (p.src1, p.imm(0))
        truth = p.op(op, *operands)
        return p.op(MicroOp.XOR, truth, p.word(1)) if negated else truth

    return body


_RELATIONS: tuple[tuple[str, str, MicroOp, bool, bool], ...] = (
    ("less_imm", "src1 < value", MicroOp.FLT, False, False),
    ("less_equal_imm", "src1 ≤ value", MicroOp.FLE, False, False),
    ("greater_imm", "src1 > value", MicroOp.FLT, True, False),
    ("greater_equal_imm", "src1 ≥ value", MicroOp.FLE, True, False),
    ("equal_imm", "src1 = value", MicroOp.FEQ, False, False),
    ("not_equal_imm", "src1 ≠ value, true with a NaN", MicroOp.FEQ, False, True),
    ("int_less_imm", "src1 < value, int32", MicroOp.ILT, False, False),
    ("int_less_equal_imm", "src1 ≤ value, int32", MicroOp.ILT, True, True),
    ("int_greater_imm", "src1 > value, int32", MicroOp.ILT, True, False),
    ("int_greater_equal_imm", "src1 ≥ value, int32", MicroOp.ILT, False, True),
    ("int_equal_imm", "src1 = value, int32", MicroOp.IEQ, False, False),
    ("int_not_equal_imm", "src1 ≠ value, int32", MicroOp.IEQ, False, True),
)
for _name, _text, _op, _swapped, _negated in _RELATIONS:
    FAMILY.add(_name, _compare(_op, _swapped, _negated), _text, sources=1, imms=("value",))


# ---------------------------------------------------------------------- masks
@program("src1 where index ≤ src2, else the word 0", sources=2)
def tril(p: Assembler) -> Value:
    return p.select(p.op(MicroOp.ILT, p.src2, p.index), p.word(0), p.src1)


@program("src1 where index ≥ src2, else the word 0", sources=2)
def triu(p: Assembler) -> Value:
    return p.select(p.op(MicroOp.ILT, p.index, p.src2), p.word(0), p.src1)


@program("scale·src1 where index ≤ src2, else −∞", sources=2, imms=("scale",))
def scale_causal(p: Assembler) -> Value:
    beyond = p.op(MicroOp.ILT, p.src2, p.index)
    return p.select(beyond, p.f(float("-inf")), p.mul(p.src1, p.imm(0)))


@program("scale·src1 where src2 has a bit set, else −∞", sources=2, imms=("scale",))
def scale_where(p: Assembler) -> Value:
    return p.select(p.src2, p.mul(p.src1, p.imm(0)), p.f(float("-inf")))


# ---------------------------------------------------------------------- order
@program(
    "an int32 that orders as the fp32 src1 does: −0 as +0, NaN last; XOR mask",
    sources=1,
    imms=("mask",),
)
def sort_key(p: Assembler) -> Value:
    plain = p.fma(p.src1, p.f(1.0), p.f(0.0))
    sign = p.op(MicroOp.SRL, p.op(MicroOp.SRA, plain, p.word(31)), p.word(1))
    return p.op(MicroOp.XOR, p.op(MicroOp.XOR, plain, sign), p.imm(0))


@program(
    "how many of a row come before src2, at place src3: src1 < src2, or equal and sooner; int32",
    sources=3,
    reduce=Reduce.IADD,
)
def rank(p: Assembler) -> Value:
    sooner = p.op(MicroOp.ILT, p.index, p.src3)
    equal = p.op(MicroOp.AND, p.op(MicroOp.IEQ, p.src1, p.src2), sooner)
    return p.op(MicroOp.OR, p.op(MicroOp.ILT, p.src1, p.src2), equal)


@program(
    "`place` where src1 equals src2, or is a NaN and src3 is below 0; else src3",
    sources=3,
    imms=("place",),
)
def match_index(p: Assembler) -> Value:
    unset = p.op(MicroOp.ILT, p.src3, p.word(0))
    ordered = p.op(MicroOp.FEQ, p.src1, p.src1)
    first = p.select(ordered, p.src3, p.select(unset, p.imm(0), p.src3))
    return p.select(p.op(MicroOp.FEQ, p.src1, p.src2), p.imm(0), first)
