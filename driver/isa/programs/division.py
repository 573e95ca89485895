# SPDX-License-Identifier: Apache-2.0
"""Rounding to whole numbers, and division that leaves a remainder: exact, of any magnitude."""

from __future__ import annotations

from driver.isa.assembler import Assembler, Family, Value
from driver.isa.micro import MicroOp
from driver.isa.programs import _math as m

FAMILY = Family("division")
program = FAMILY.program

_WHOLE = 2.0**23
"""From here on every number is whole."""


def _whole(p: Assembler, x: Value, convert: MicroOp) -> Value:
    """x converted to an integer and back, with its sign; large numbers, ∞ and NaN as they are."""
    near = p.op(MicroOp.OR, p.op(MicroOp.I2F, p.op(convert, x)), m.sign_of(p, x))
    return p.select(p.op(MicroOp.FLT, p.abs(x), p.f(_WHOLE)), near, x)


def _truncated(p: Assembler, x: Value) -> Value:
    return _whole(p, x, MicroOp.F2I_TRUNC)


def _floor(p: Assembler, x: Value) -> Value:
    near = _truncated(p, x)
    above = p.op(MicroOp.FLT, x, near)
    return p.select(above, p.sub(near, p.f(1.0)), near)


@program("src1 towards 0", sources=1)
def trunc(p: Assembler) -> Value:
    return _truncated(p, p.src1)


@program("the largest whole number up to src1", sources=1)
def floor(p: Assembler) -> Value:
    return _floor(p, p.src1)


@program("the least whole number from src1 on", sources=1)
def ceil(p: Assembler) -> Value:
    return p.neg(_floor(p, p.neg(p.src1)))


@program("the whole number nearest to src1, ties to even", sources=1)
def round_(p: Assembler) -> Value:
    return _whole(p, p.src1, MicroOp.F2I)


@program(
    "src1·scale to the nearest whole number, ties to even, ÷ scale", sources=1, imms=("scale",)
)
def round_scaled(p: Assembler) -> Value:
    return p.div(_whole(p, p.mul(p.src1, p.imm(0)), MicroOp.F2I), p.imm(0))


@program(
    "src1 ÷ scale to the nearest whole number, ties to even, ·scale", sources=1, imms=("scale",)
)
def round_tens(p: Assembler) -> Value:
    return p.mul(_whole(p, p.div(p.src1, p.imm(0)), MicroOp.F2I), p.imm(0))


@program("src1 less src1 towards 0", sources=1)
def frac(p: Assembler) -> Value:
    return p.sub(p.src1, _truncated(p, p.src1))


@program("1 where the sign bit of src1 is set, else 0", sources=1)
def sign_bit(p: Assembler) -> Value:
    return p.op(MicroOp.SRL, p.src1, p.word(31))


@program("src1 ÷ src2 towards 0", sources=2)
def div_trunc(p: Assembler) -> Value:
    return _truncated(p, p.div(p.src1, p.src2))


# ---------------------------------------------------------------------- remainders of floats
_EXPONENT = 0x7F80_0000
_STEP = 22
"""Bits of the quotient that one step takes; its rounded quotient is then below 2²⁴."""
_STEPS = 12
"""254 exponents of normal numbers, 22 at a time."""


def _reduced(p: Assembler, rest: Value, y: Value) -> Value:
    """rest less a multiple of y, both above 0 and y normal: 22 bits nearer to y, or below it.

    The multiple is of y·2^k, so quotient, product and difference are exact; the rounded quotient
    may be one too large.
    """
    field = p.word(_EXPONENT)
    apart = p.op(MicroOp.ISUB, p.op(MicroOp.AND, rest, field), p.op(MicroOp.AND, y, field))
    shift = p.op(MicroOp.IMAX, p.op(MicroOp.ISUB, apart, p.word(_STEP << 23)), p.word(0))
    scaled = p.op(MicroOp.IADD, y, shift)
    quotient = p.op(MicroOp.I2F, p.op(MicroOp.F2I_TRUNC, p.div(rest, scaled)))
    less = p.fma(p.neg(quotient), scaled, rest)
    return p.select(p.op(MicroOp.FLT, less, p.f(0.0)), p.add(less, scaled), less)


@program("src1 less the multiple of src2 next to it towards 0, exact", sources=2)
def fmod(p: Assembler) -> Value:
    # A subnormal src2 is multiplied by 2²⁴: first its remainder by that, then both scaled.
    size, divisor = p.abs(p.src1), p.abs(p.src2)
    small = p.op(MicroOp.FLT, divisor, p.f(2.0**-126))
    scale = p.select(small, p.f(2.0**24), p.f(1.0))
    y = p.mul(divisor, scale)
    rest = size
    for _ in range(_STEPS):
        rest = _reduced(p, rest, y)
    rest = _reduced(p, _reduced(p, p.mul(rest, scale), y), y)
    signed = p.op(MicroOp.OR, p.div(rest, scale), m.sign_of(p, p.src1))
    return _special_remainder(p, size, divisor, signed)


def _special_remainder(p: Assembler, size: Value, divisor: Value, value: Value) -> Value:
    """NaN of ∞ or by 0 or of a NaN; a number by ∞ is the number; of a number, `value`."""
    infinity = p.word(m.INFINITY)
    value = p.select(p.op(MicroOp.FEQ, divisor, infinity), p.src1, value)
    sound = p.op(
        MicroOp.AND, p.op(MicroOp.FLT, size, infinity), p.op(MicroOp.FLT, p.f(0.0), divisor)
    )
    return p.select(sound, value, p.word(m.NAN))


def _other_sign(p: Assembler, rest: Value, divisor: Value) -> Value:
    """1 where the remainder is not 0 and has another sign than the divisor."""
    signs = p.op(MicroOp.SRL, p.op(MicroOp.XOR, rest, divisor), p.word(31))
    zero = p.op(MicroOp.FEQ, rest, p.f(0.0))
    return p.select(zero, p.word(0), signs)


@program("src1, a remainder by src2 towards 0, made one towards −∞", sources=2)
def remainder_of_fmod(p: Assembler) -> Value:
    return p.select(_other_sign(p, p.src1, p.src2), p.add(p.src1, p.src2), p.src1)


@program("src1 ÷ src2 towards −∞, where src3 is the remainder towards 0", sources=3)
def floor_of_fmod(p: Assembler) -> Value:
    quotient = p.div(p.sub(p.src1, p.src3), p.src2)
    quotient = p.select(_other_sign(p, p.src3, p.src2), p.sub(quotient, p.f(1.0)), quotient)
    near = _floor(p, quotient)
    near = p.select(p.op(MicroOp.FLT, p.f(0.5), p.sub(quotient, near)), p.add(near, p.f(1.0)), near)
    zero = m.sign_of(p, p.op(MicroOp.XOR, p.src1, p.src2))
    near = p.select(p.op(MicroOp.FEQ, quotient, p.f(0.0)), zero, near)
    by_zero = p.op(MicroOp.FEQ, p.src2, p.f(0.0))
    return p.select(by_zero, p.div(p.src1, p.src2), near)


# ---------------------------------------------------------------------- int32
def _int_parts(p: Assembler) -> tuple[Value, Value]:
    """(|src1| ÷ |src2| towards 0, what is left of −|src1|): by −|·|, which int32 always holds.

    The first quotient is off by at most 2⁹ + 1, the second, of what is left, by one.
    """
    above, below = (p.op(MicroOp.ISUB, p.word(0), x) for x in (p.src1, p.src2))
    x, y = p.op(MicroOp.IMIN, p.src1, above), p.op(MicroOp.IMIN, p.src2, below)
    divisor = p.op(MicroOp.I2F, y)
    quotient = p.op(MicroOp.F2I_TRUNC, p.div(p.op(MicroOp.I2F, x), divisor))
    rest = p.op(MicroOp.ISUB, x, p.op(MicroOp.IMUL, quotient, y))
    more = p.op(MicroOp.F2I, p.div(p.op(MicroOp.I2F, rest), divisor))
    quotient = p.op(MicroOp.IADD, quotient, more)
    rest = p.op(MicroOp.ISUB, rest, p.op(MicroOp.IMUL, more, y))
    over = p.op(MicroOp.ILT, p.word(0), rest)
    quotient = p.op(MicroOp.ISUB, quotient, over)
    rest = p.op(MicroOp.IADD, rest, p.select(over, y, p.word(0)))
    under = p.op(MicroOp.ILT, y, rest)
    short = p.op(MicroOp.XOR, under, p.word(1))
    quotient = p.op(MicroOp.IADD, quotient, short)
    return quotient, p.op(MicroOp.ISUB, rest, p.select(short, y, p.word(0)))


def _negated_if(p: Assembler, x: Value, sign_word: Value) -> Value:
    """−x where the word's sign bit is set."""
    mask = p.op(MicroOp.SRA, sign_word, p.word(31))
    return p.op(MicroOp.ISUB, p.op(MicroOp.XOR, x, mask), mask)


@program("src1 ÷ src2 towards 0, int32", sources=2)
def int_div_trunc(p: Assembler) -> Value:
    quotient, _ = _int_parts(p)
    return _negated_if(p, quotient, p.op(MicroOp.XOR, p.src1, p.src2))


@program("the remainder of src1 ÷ src2 towards 0, int32", sources=2)
def int_fmod(p: Assembler) -> Value:
    _, rest = _int_parts(p)
    return _negated_if(p, p.op(MicroOp.ISUB, p.word(0), rest), p.src1)


@program("src1 ÷ src2 towards −∞, int32", sources=2)
def int_div_floor(p: Assembler) -> Value:
    quotient, rest = _int_parts(p)
    signs = p.op(MicroOp.XOR, p.src1, p.src2)
    apart = p.op(
        MicroOp.AND, p.op(MicroOp.SRL, signs, p.word(31)), p.op(MicroOp.ILT, rest, p.word(0))
    )
    return p.op(MicroOp.ISUB, _negated_if(p, quotient, signs), apart)


@program("the remainder of src1 ÷ src2 towards −∞, int32", sources=2)
def int_remainder(p: Assembler) -> Value:
    _, rest = _int_parts(p)
    signed = _negated_if(p, p.op(MicroOp.ISUB, p.word(0), rest), p.src1)
    signs = p.op(MicroOp.SRL, p.op(MicroOp.XOR, p.src1, p.src2), p.word(31))
    apart = p.op(MicroOp.AND, signs, p.op(MicroOp.ILT, rest, p.word(0)))
    return p.op(MicroOp.IADD, signed, p.select(apart, p.src2, p.word(0)))


_EXPONENT_BITS = 31
_NOT_TWO = 0xFFFF_FFFD


@program("src1 to the power of src2 modulo 2³²; below 0 the whole part", sources=2)
def int_pow(p: Assembler) -> Value:
    one, zero = p.word(1), p.word(0)
    base, left, value = p.src1, p.src2, one
    for bit in range(_EXPONENT_BITS):
        taken = p.op(MicroOp.AND, left, one)
        value = p.select(taken, p.op(MicroOp.IMUL, value, base), value)
        if bit < _EXPONENT_BITS - 1:
            base, left = p.op(MicroOp.IMUL, base, base), p.op(MicroOp.SRL, left, one)
    odd = p.select(p.op(MicroOp.AND, p.src2, one), p.src1, one)
    # 1 or −1: of what is one more, 2 or 0, no other bit is set.
    others = p.op(MicroOp.AND, p.op(MicroOp.IADD, p.src1, one), p.word(_NOT_TWO))
    whole = p.select(p.op(MicroOp.IEQ, others, zero), odd, zero)
    return p.select(p.op(MicroOp.ILT, p.src2, zero), whole, value)
