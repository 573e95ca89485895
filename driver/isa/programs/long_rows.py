# SPDX-License-Identifier: Apache-2.0
"""Reductions of int64 by words: sums of 16-bit halves, extremes, first places."""

from __future__ import annotations

from collections.abc import Callable

from driver.isa.assembler import Assembler, Family, Value
from driver.isa.micro import MicroOp, Reduce
from driver.isa.programs.long import HALF_BITS, LARGEST, SIGN, high_half_of, low_half_of, sign_of

FAMILY = Family("long_rows")
program = FAMILY.program


@program("src1 mod 2¹⁶", sources=1)
def low_half(p: Assembler) -> Value:
    return low_half_of(p, p.src1)


@program("the upper 16 bits of src1, unsigned", sources=1)
def high_half(p: Assembler) -> Value:
    return high_half_of(p, p.src1)


@program("Σ src1 mod 2¹⁶, modulo 2³²", sources=1, reduce=Reduce.IADD)
def sum_low_halves(p: Assembler) -> Value:
    return low_half_of(p, p.src1)


@program("Σ of the upper 16 bits of src1, modulo 2³²", sources=1, reduce=Reduce.IADD)
def sum_high_halves(p: Assembler) -> Value:
    return high_half_of(p, p.src1)


@program(
    "Σ −1 for each src1 below 0: the sum of an int32's high words", sources=1, reduce=Reduce.IADD
)
def sum_sign_words(p: Assembler) -> Value:
    return sign_of(p, p.src1)


@program("low word of src1 + 2¹⁶·src2", sources=2)
def halves_low(p: Assembler) -> Value:
    return p.op(MicroOp.IADD, p.src1, p.op(MicroOp.SHL, p.src2, p.word(HALF_BITS)))


@program("high word of src1 + 2¹⁶·src2 + 2³²·src3, for src1 and src2 up to 2³² − 2¹⁶", sources=3)
def halves_high(p: Assembler) -> Value:
    carried = p.op(MicroOp.IADD, p.src2, high_half_of(p, p.src1))
    return p.op(MicroOp.IADD, p.src3, high_half_of(p, carried))


def _low_extreme(identity: int) -> Callable[[Assembler], Value]:
    def body(p: Assembler) -> Value:
        ordered = p.op(MicroOp.XOR, p.src1, p.word(SIGN))
        return p.select(p.op(MicroOp.IEQ, p.src2, p.src3), ordered, p.word(identity))

    return body


for _name, _text, _reduce, _identity in (
    ("amax", "largest", Reduce.IMAX, SIGN),
    ("amin", "smallest", Reduce.IMIN, LARGEST),
):
    FAMILY.add(
        f"long_{_name}_low",
        _low_extreme(_identity),
        f"the {_text} low word src1, less 2³¹, where the high word src2 equals src3",
        sources=3,
        reduce=_reduce,
    )


@program("the first index at which src1 has a bit set", sources=1, reduce=Reduce.IMIN)
def first_set(p: Assembler) -> Value:
    return p.select(p.src1, p.index, p.word(LARGEST))
