# SPDX-License-Identifier: Apache-2.0
"""Between int64, by its two words, and fp32: rounded once, or towards 0."""

from __future__ import annotations

from collections.abc import Callable

from driver.isa.assembler import Assembler, Family, Value
from driver.isa.micro import MicroOp
from driver.isa.programs.long import LARGEST, SIGN, negated_high, opposite, sign_of

FAMILY = Family("long_floats")
program = FAMILY.program


def _short_float(p: Assembler, low: Value, high: Value) -> Value:
    """An unsigned 64-bit number, not below 2³¹, as fp32: its leading 31 bits, the last of them
    set where any bit below is, and a power of two."""
    exponent = p.op(MicroOp.SRL, p.op(MicroOp.I2F, high), p.word(23))
    length = p.op(MicroOp.ISUB, p.op(MicroOp.AND, exponent, p.word(0xFF)), p.word(126))
    left = p.op(MicroOp.ISUB, p.word(32), length)
    beyond = p.op(MicroOp.SRL, low, p.op(MicroOp.ISUB, length, p.word(1)))
    upper = p.op(MicroOp.OR, p.op(MicroOp.SHL, high, left), p.op(MicroOp.SRL, beyond, p.word(1)))
    lost = p.op(MicroOp.SHL, low, left)
    shift = p.select(high, length, p.word(0))
    window = p.select(high, upper, low)
    sticky = p.op(MicroOp.AND, window, p.word(1))
    sticky = p.op(
        MicroOp.OR, sticky, p.select(p.select(high, lost, p.word(0)), p.word(1), p.word(0))
    )
    leading = p.op(MicroOp.OR, p.op(MicroOp.SRL, window, p.word(1)), sticky)
    scale = p.op(MicroOp.SHL, p.op(MicroOp.IADD, shift, p.word(128)), p.word(23))
    return p.mul(p.op(MicroOp.I2F, leading), scale)


@program("int64 of low word src1 and high word src2 to fp32, rounded once", sources=2)
def long_to_float(p: Assembler) -> Value:
    sign = sign_of(p, p.src2)
    low = p.op(MicroOp.ISUB, p.op(MicroOp.XOR, p.src1, sign), sign)
    high = p.select(sign, negated_high(p, p.src1, p.src2), p.src2)
    short = p.op(
        MicroOp.AND,
        p.op(MicroOp.IEQ, high, p.word(0)),
        opposite(p, p.op(MicroOp.SRL, low, p.word(31))),
    )
    size = p.select(short, p.op(MicroOp.I2F, low), _short_float(p, low, high))
    return p.op(MicroOp.OR, size, p.op(MicroOp.AND, sign, p.word(SIGN)))


def _float_words(p: Assembler, x: Value) -> tuple[Value, Value]:
    """|x| towards 0 as low and high word, for |x| < 2⁶³; 2⁶³ from there on."""
    size = p.abs(x)
    high = p.op(MicroOp.F2I_TRUNC, p.mul(size, p.f(2.0**-32)))
    rest = p.fma(p.op(MicroOp.I2F, high), p.f(-(2.0**32)), size)
    upper = opposite(p, p.op(MicroOp.FLT, rest, p.f(2.0**31)))
    small = p.op(MicroOp.F2I_TRUNC, p.sub(rest, p.select(upper, p.f(2.0**31), p.f(0.0))))
    low = p.op(MicroOp.XOR, small, p.op(MicroOp.SHL, upper, p.word(31)))
    inside = p.op(MicroOp.FLT, size, p.f(2.0**63))
    return p.select(inside, low, p.word(0)), p.select(inside, high, p.word(SIGN))


def _saturated(p: Assembler, x: Value, word: Value, largest: int) -> Value:
    """A word of an int64 made from x: `largest` for x ≥ 2⁶³, 0 for NaN."""
    beyond = p.op(MicroOp.FLE, p.f(2.0**63), x)
    word = p.select(beyond, p.word(largest), word)
    return p.select(p.op(MicroOp.FEQ, x, x), word, p.word(0))


def _float_low(p: Assembler, x: Value) -> Value:
    low, _ = _float_words(p, x)
    sign = sign_of(p, x)
    return _saturated(p, x, p.op(MicroOp.ISUB, p.op(MicroOp.XOR, low, sign), sign), -1)


def _float_high(p: Assembler, x: Value) -> Value:
    low, high = _float_words(p, x)
    return _saturated(p, x, p.select(sign_of(p, x), negated_high(p, low, high), high), LARGEST)


_Word = Callable[[Assembler, Value], Value]


def _of_source(word: _Word) -> Callable[[Assembler], Value]:
    return lambda p: word(p, p.src1)


def _of_quotient(word: _Word) -> Callable[[Assembler], Value]:
    return lambda p: word(p, p.div(p.src1, p.src2))


for _name, _word in (("low", _float_low), ("high", _float_high)):
    FAMILY.add(
        f"float_to_long_{_name}",
        _of_source(_word),
        f"{_name} word of fp32 to int64, towards 0; saturates, NaN gives 0",
        sources=1,
    )
    FAMILY.add(
        f"quotient_to_long_{_name}",
        _of_quotient(_word),
        f"{_name} word of src1 ÷ src2, fp32, to int64, towards 0; saturates, NaN gives 0",
        sources=2,
    )


@program("1 where one of src1 and src2 is below 0, int32, and the other is not", sources=2)
def signs_differ(p: Assembler) -> Value:
    return p.op(MicroOp.SRL, p.op(MicroOp.XOR, p.src1, p.src2), p.word(31))
