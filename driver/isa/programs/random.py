# SPDX-License-Identifier: Apache-2.0
"""Random numbers: two rounds of Philox4x32, and what is made of its words (docs/numerics.md).

A program has one result, so each word of two rounds is a program of its own. It depends on three
of the four words before.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from driver.isa.assembler import Assembler, Family, Value
from driver.isa.micro import MicroOp
from driver.isa.programs import _math as m
from driver.isa.programs.functions import log_near_1, log_parts, quarter_wave

FAMILY = Family("random")
program = FAMILY.program

MULTIPLIERS = (0xD251_1F53, 0xCD9E_8D57)


def _halves(p: Assembler, x: Value) -> tuple[Value, Value]:
    """(low, high) 16 bits of a word."""
    return p.op(MicroOp.AND, x, p.word(0xFFFF)), p.op(MicroOp.SRL, x, p.word(16))


def _high(p: Assembler, x: Value, low: Value, high: Value) -> Value:
    """The upper 32 bits of x·(low + 2^16·high), both below 2^16. No sum on the way overflows."""
    x_low, x_high = _halves(p, x)
    carry = p.op(MicroOp.SRL, p.op(MicroOp.IMUL, x_low, low), p.word(16))
    first = p.op(MicroOp.IADD, p.op(MicroOp.IMUL, x_low, high), carry)
    first_low, first_high = _halves(p, first)
    second = p.op(MicroOp.IADD, p.op(MicroOp.IMUL, x_high, low), first_low)
    top = p.op(MicroOp.IADD, p.op(MicroOp.IMUL, x_high, high), first_high)
    return p.op(MicroOp.IADD, top, p.op(MicroOp.SRL, second, p.word(16)))


def _round_high(p: Assembler, factor: int, x: Value, word: Value, key: Value) -> Value:
    """hi(factor·x) ^ word ^ key."""
    high = _high(p, x, p.word(factor & 0xFFFF), p.word(factor >> 16))
    return p.op(MicroOp.XOR, p.op(MicroOp.XOR, high, word), key)


def _round_low(p: Assembler, factor: int, x: Value) -> Value:
    """lo(factor·x)."""
    return p.op(MicroOp.IMUL, x, p.word(factor))


def _even_word(inner: int, outer: int) -> Callable[[Assembler], Value]:
    """Word 0 or 2 after two rounds: src1 meets `inner` in the first, src3 meets `outer`."""

    def body(p: Assembler) -> Value:
        first = _round_high(p, inner, p.src1, p.src2, p.imm(0))
        return _round_high(p, outer, first, _round_low(p, outer, p.src3), p.imm(1))

    return body


def _odd_word(inner: int, outer: int) -> Callable[[Assembler], Value]:
    """Word 1 or 3 after two rounds."""
    return lambda p: _round_low(p, outer, _round_high(p, inner, p.src1, p.src2, p.imm(0)))


_WORDS = (
    (0, "c0, c3, c2", MULTIPLIERS, ("key1", "next_key0")),
    (1, "c0, c3", MULTIPLIERS, ("key1",)),
    (2, "c2, c1, c0", MULTIPLIERS[::-1], ("key0", "next_key1")),
    (3, "c2, c1", MULTIPLIERS[::-1], ("key0",)),
)
"""(word, the words it is made of, multipliers of the first and second round, key words)."""

for _word, _of, _factors, _keys in _WORDS:
    _make = _even_word if len(_keys) == 2 else _odd_word
    FAMILY.add(
        f"philox_word{_word}",
        _make(*_factors),
        f"word {_word} of Philox's counter after two rounds, from {_of}",
        sources=3 if len(_keys) == 2 else 2,
        imms=_keys,
    )


# ---------------------------------------------------------------------- numbers
def _unit(p: Assembler, word: Value, shift: Value, scale: Value) -> Value:
    """⌊word ÷ 2^shift⌋·scale."""
    return p.mul(p.op(MicroOp.I2F, p.op(MicroOp.SRL, word, shift)), scale)


def _open_unit(p: Assembler, word: Value) -> Value:
    """(2·⌊word ÷ 512⌋ + 1)·2^-24."""
    whole = p.op(MicroOp.I2F, p.op(MicroOp.SRL, word, p.word(9)))
    return p.fma(whole, p.f(2.0**-23), p.f(2.0**-24))


def _log_open_unit(p: Assembler, word: Value) -> Value:
    """log of the open unit, which is neither 0 nor 1."""
    k, f = log_parts(p, _open_unit(p, word))
    low = log_near_1(p, f, p.fma(k, p.f(m.LN2_LOW), f))
    return p.fma(k, p.f(m.LN2_HIGH), low)


@program(
    "min(fma(⌊word src1 ÷ 2^shift⌋ · 2^(shift − 32), scale, start), last)",
    sources=1,
    imms=("shift", "scale", "start", "last"),
)
def random_uniform(p: Assembler) -> Value:
    # 2^(shift − 32) by its bits: the exponent's field is shift − 32 + 127.
    field = p.op(MicroOp.IADD, p.imm(0), p.word(127 - 32))
    unit = _unit(p, p.src1, p.imm(0), p.op(MicroOp.SHL, field, p.word(23)))
    return p.op(MicroOp.FMIN, p.fma(unit, p.imm(1), p.imm(2)), p.imm(3))


@program(
    "the word `one` where the unit of word src1 is below src2, else 0", sources=2, imms=("one",)
)
def random_bernoulli(p: Assembler) -> Value:
    below = p.op(MicroOp.FLT, _unit(p, p.src1, p.word(8), p.f(2.0**-24)), p.src2)
    return p.select(below, p.imm(0), p.word(0))


@program("low + ⌊word src1 · count ÷ 2³²⌋ modulo 2³²", sources=1, imms=("low", "count"))
def random_integer(p: Assembler) -> Value:
    return p.op(MicroOp.IADD, _high(p, p.src1, *_halves(p, p.imm(1))), p.imm(0))


@program("−log(open unit of word src1) ÷ rate", sources=1, imms=("rate",))
def random_exponential(p: Assembler) -> Value:
    return p.div(p.neg(_log_open_unit(p, p.src1)), p.imm(0))


@program(
    "√(−2·log of the open unit of word src1) times cos (index 0) or sin (index 1) of 2π·src2 ÷ 2³²",
    sources=2,
)
def random_normal(p: Assembler) -> Value:
    radius = p.sqrt(p.mul(_log_open_unit(p, p.src1), p.f(-2.0)))
    # The nearest quadrant, and the signed rest in units of 2^-32 quadrants.
    nearest = p.op(MicroOp.SRL, p.op(MicroOp.IADD, p.src2, p.word(1 << 29)), p.word(30))
    rest = p.op(MicroOp.I2F, p.op(MicroOp.SHL, p.src2, p.word(2)))
    cosine = p.op(MicroOp.XOR, p.index, p.word(1))
    quadrant = p.op(MicroOp.IADD, nearest, cosine)
    wave = quarter_wave(p, quadrant, p.mul(rest, p.f(math.pi / 2 * 2.0**-32)))
    return p.mul(radius, wave)


@program(
    "src1·(1 where src2 has a bit set, else 0)·scale: two products", sources=2, imms=("scale",)
)
def dropout(p: Assembler) -> Value:
    kept = p.select(p.src2, p.f(1.0), p.f(0.0))
    return p.mul(p.mul(p.src1, kept), p.imm(0))
