# SPDX-License-Identifier: Apache-2.0
"""Passes that sort by one bit, place elements that a mask chooses, and look for places."""

from __future__ import annotations

from collections.abc import Callable

from driver.isa.assembler import Assembler, Family, Value
from driver.isa.micro import REDUCE_IDENTITY, MicroOp, Reduce
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


@program(
    "the bin of src1 between src2 and src3, from 0 to `last`; last + 1 outside",
    sources=3,
    imms=("bins", "last"),
)
def histogram_bin(p: Assembler) -> Value:
    """As torch rounds: (x − low)·bins ÷ (high − low), towards 0. An empty range is widened by 1."""
    x, one = p.src1, p.f(1.0)
    empty = p.op(MicroOp.FEQ, p.src2, p.src3)
    low = p.select(empty, p.sub(p.src2, one), p.src2)
    high = p.select(empty, p.add(p.src3, one), p.src3)
    scaled = p.mul(p.sub(x, low), p.imm(0))
    place = p.op(MicroOp.F2I_TRUNC, p.div(scaled, p.sub(high, low)))
    inside = p.op(MicroOp.AND, p.op(MicroOp.FLE, low, x), p.op(MicroOp.FLE, x, high))
    outside = p.op(MicroOp.IADD, p.imm(1), p.word(1))
    return p.select(inside, p.op(MicroOp.IMIN, place, p.imm(1)), outside)


def _sent_here(reduce: Reduce) -> Callable[[Assembler], Value]:
    """src1 where its index src2 is the place src3, else what changes no reduction."""
    return lambda p: p.select(
        p.op(MicroOp.IEQ, p.src2, p.src3), p.src1, p.word(REDUCE_IDENTITY[reduce])
    )


_EXTREMES = (
    ("scatter_amax", "largest", Reduce.FMAX),
    ("scatter_amin", "smallest", Reduce.FMIN),
    ("int_scatter_amax", "largest int32", Reduce.IMAX),
    ("int_scatter_amin", "smallest int32", Reduce.IMIN),
)
for _name, _which, _reduce in _EXTREMES:
    _text = f"the {_which} src1 whose index src2 is the place src3"
    FAMILY.add(_name, _sent_here(_reduce), _text, sources=3, reduce=_reduce)
