# SPDX-License-Identifier: Apache-2.0
"""int64 on 32-bit words: programs that see low and high words of 64-bit numbers as int32 sources.

The low word counts as unsigned. driver/lower/long.py joins these programs to 64-bit operations.
"""

from __future__ import annotations

from collections.abc import Callable

from driver.isa.assembler import Assembler, Family, Value
from driver.isa.micro import MicroOp

FAMILY = Family("long")
program = FAMILY.program

SIGN = 0x8000_0000
LARGEST = 0x7FFF_FFFF
_HALF = 0xFFFF
HALF_BITS = 16


def unsigned_less_of(p: Assembler, a: Value, b: Value) -> Value:
    """1 where a is below b, both unsigned."""
    left, right = (p.op(MicroOp.XOR, x, p.word(SIGN)) for x in (a, b))
    return p.op(MicroOp.ILT, left, right)


def opposite(p: Assembler, a: Value) -> Value:
    """The other truth value."""
    return p.op(MicroOp.XOR, a, p.word(1))


def sign_of(p: Assembler, a: Value) -> Value:
    """All bits set where an int32 is below 0, else none."""
    return p.op(MicroOp.SRA, a, p.word(31))


def low_half_of(p: Assembler, a: Value) -> Value:
    """a mod 2¹⁶"""
    return p.op(MicroOp.AND, a, p.word(_HALF))


def high_half_of(p: Assembler, a: Value) -> Value:
    """The upper 16 bits, unsigned."""
    return p.op(MicroOp.SRL, a, p.word(HALF_BITS))


# ---------------------------------------------------------------------- order
@program("src1 < src2, unsigned", sources=2)
def unsigned_less(p: Assembler) -> Value:
    return unsigned_less_of(p, p.src1, p.src2)


def _long_less(p: Assembler) -> Value:
    equal = p.op(MicroOp.IEQ, p.src1, p.src2)
    return p.op(MicroOp.OR, p.op(MicroOp.ILT, p.src1, p.src2), p.op(MicroOp.AND, equal, p.src3))


def _long_equal(p: Assembler) -> Value:
    return p.op(MicroOp.AND, p.op(MicroOp.IEQ, p.src1, p.src2), p.src3)


def _negated(body: Callable[[Assembler], Value]) -> Callable[[Assembler], Value]:
    return lambda p: opposite(p, body(p))


_LESS = "src1 < src2, high words; src3 is that of the low words"
_EQUAL = "src1 = src2, high words; src3 is that of the low words"
FAMILY.add("long_less", _long_less, _LESS, sources=3)
FAMILY.add("long_not_less", _negated(_long_less), f"not: {_LESS}", sources=3)
FAMILY.add("long_equal", _long_equal, _EQUAL, sources=3)
FAMILY.add("long_not_equal", _negated(_long_equal), f"not: {_EQUAL}", sources=3)


def _with_number(
    relation: Callable[[Assembler, Value, Value, Value, Value], Value], *, negated: bool
) -> Callable[[Assembler], Value]:
    """A relation of (low, high) src1, src2 and (low, high) imm0, imm1."""

    def body(p: Assembler) -> Value:
        truth = relation(p, p.src1, p.src2, p.imm(0), p.imm(1))
        return opposite(p, truth) if negated else truth

    return body


def _less_words(p: Assembler, low: Value, high: Value, other: Value, other_high: Value) -> Value:
    tie = p.op(MicroOp.AND, p.op(MicroOp.IEQ, high, other_high), unsigned_less_of(p, low, other))
    return p.op(MicroOp.OR, p.op(MicroOp.ILT, high, other_high), tie)


def _greater_words(p: Assembler, low: Value, high: Value, other: Value, other_high: Value) -> Value:
    return _less_words(p, other, other_high, low, high)


def _equal_words(p: Assembler, low: Value, high: Value, other: Value, other_high: Value) -> Value:
    return p.op(MicroOp.AND, p.op(MicroOp.IEQ, low, other), p.op(MicroOp.IEQ, high, other_high))


for _name, _symbol, _relation, _is_negated in (
    ("less", "<", _less_words, False),
    ("greater_equal", "≥", _less_words, True),
    ("greater", ">", _greater_words, False),
    ("less_equal", "≤", _greater_words, True),
    ("equal", "=", _equal_words, False),
    ("not_equal", "≠", _equal_words, True),
):
    FAMILY.add(
        f"long_{_name}_imm",
        _with_number(_relation, negated=_is_negated),
        f"x {_symbol} the number, of x's low word src1 and high word src2",
        sources=2,
        imms=("low", "high"),
    )


@program("src1 or src2 has a bit set", sources=2)
def long_truth(p: Assembler) -> Value:
    return p.select(p.op(MicroOp.OR, p.src1, p.src2), p.word(1), p.word(0))


@program("0, or −1 where src1 is below 0: the high word of an int32", sources=1)
def sign_word(p: Assembler) -> Value:
    return sign_of(p, p.src1)


@program("the int64 of low word src1 and high word src2 as int32, −2³¹ if it is none", sources=2)
def long_in_word(p: Assembler) -> Value:
    fits = p.op(MicroOp.IEQ, sign_of(p, p.src1), p.src2)
    return p.select(fits, p.src1, p.word(-(1 << 31)))


# ---------------------------------------------------------------------- sums and products
@program("what src1 + src2 carries, unsigned: 0 or 1", sources=2)
def carry(p: Assembler) -> Value:
    return unsigned_less_of(p, p.op(MicroOp.IADD, p.src1, p.src2), p.src1)


@program(
    "high word of x + the number, of x's low word src1 and high word src2",
    sources=2,
    imms=("low", "high"),
)
def long_add_imm_high(p: Assembler) -> Value:
    carried = unsigned_less_of(p, p.op(MicroOp.IADD, p.src1, p.imm(0)), p.src1)
    return p.op(MicroOp.IADD, p.op(MicroOp.IADD, p.src2, p.imm(1)), carried)


@program("src1 − src2 − src3 modulo 2³²", sources=3)
def int_sub_sub(p: Assembler) -> Value:
    return p.op(MicroOp.ISUB, p.op(MicroOp.ISUB, p.src1, p.src2), p.src3)


@program("src1·src2 + src3 modulo 2³²", sources=3)
def int_mul_add(p: Assembler) -> Value:
    return p.op(MicroOp.IADD, p.op(MicroOp.IMUL, p.src1, p.src2), p.src3)


def _high_product(p: Assembler, a: Value, b: Value) -> Value:
    """a·b ÷ 2³², unsigned, rounded down: from the four products of halves."""
    a0, a1, b0, b1 = (half(p, x) for x in (a, b) for half in (low_half_of, high_half_of))
    low, inner, outer, high = (
        p.op(MicroOp.IMUL, x, y) for x, y in ((a0, b0), (a0, b1), (a1, b0), (a1, b1))
    )
    middle = p.op(MicroOp.IADD, low_half_of(p, inner), low_half_of(p, outer))
    middle = p.op(MicroOp.IADD, middle, high_half_of(p, low))
    for part in (inner, outer, middle):
        high = p.op(MicroOp.IADD, high, high_half_of(p, part))
    return high


@program("src1·src2 ÷ 2³², unsigned, rounded down", sources=2)
def high_product(p: Assembler) -> Value:
    return _high_product(p, p.src1, p.src2)


def negated_high(p: Assembler, low: Value, high: Value) -> Value:
    """The high word of −x: the low word's complement carries where it is 0."""
    complement = p.op(MicroOp.XOR, high, p.word(-1))
    return p.op(MicroOp.IADD, complement, p.op(MicroOp.IEQ, low, p.word(0)))


@program("the high word of −x; src1 its low word or that of −x, src2 its high word", sources=2)
def long_neg_high(p: Assembler) -> Value:
    return negated_high(p, p.src1, p.src2)


@program("the low word of |x|, of x's low word src1 and high word src2", sources=2)
def long_abs_low(p: Assembler) -> Value:
    sign = sign_of(p, p.src2)
    return p.op(MicroOp.ISUB, p.op(MicroOp.XOR, p.src1, sign), sign)


@program("the high word of |x|; src1 x's low word or that of |x|, src2 x's high word", sources=2)
def long_abs_high(p: Assembler) -> Value:
    return p.select(sign_of(p, p.src2), negated_high(p, p.src1, p.src2), p.src2)


@program("−1, 0 or 1, the sign of x, of its low word src1 and high word src2", sources=2)
def long_sign(p: Assembler) -> Value:
    some = p.select(p.op(MicroOp.OR, p.src1, p.src2), p.word(1), p.word(0))
    return p.op(MicroOp.OR, some, sign_of(p, p.src2))


@program("−1, 0 or 1, the sign of the fp32 src1; 0 for NaN", sources=1)
def float_sign(p: Assembler) -> Value:
    above = p.op(MicroOp.FLT, p.word(0), p.src1)
    below = p.op(MicroOp.FLT, p.src1, p.word(0))
    return p.op(MicroOp.I2F, p.op(MicroOp.ISUB, above, below))


# ---------------------------------------------------------------------- ranges
_RANGE = ("start_low", "start_high", "step_low", "step_high")


def _range_low(p: Assembler) -> Value:
    return p.op(MicroOp.IADD, p.op(MicroOp.IMUL, p.index, p.imm(2)), p.imm(0))


FAMILY.add(
    "long_range_low", _range_low, "low word of start + step·index", sources=0, imms=_RANGE[:3]
)


@program("high word of start + step·index", sources=0, imms=_RANGE)
def long_range_high(p: Assembler) -> Value:
    carried = unsigned_less_of(p, _range_low(p), p.imm(0))
    high = p.op(MicroOp.IADD, _high_product(p, p.index, p.imm(2)), p.imm(1))
    high = p.op(MicroOp.IADD, high, p.op(MicroOp.IMUL, p.index, p.imm(3)))
    return p.op(MicroOp.IADD, high, carried)


# ---------------------------------------------------------------------- shifts
@program("src1 if src2 is 0 and src1 below 64, unsigned; else 64: a shift's count", sources=2)
def shift_count(p: Assembler) -> Value:
    fits = p.op(MicroOp.AND, p.op(MicroOp.IEQ, p.src2, p.word(0)), _below(p, p.src1, 64))
    return p.select(fits, p.src1, p.word(64))


def _below(p: Assembler, a: Value, limit: int) -> Value:
    return unsigned_less_of(p, a, p.word(limit))


@program("src1·2^src2 modulo 2³²; 0 where src2 is not one of 0 to 31", sources=2)
def int_shift_left(p: Assembler) -> Value:
    return p.select(_below(p, p.src2, 32), p.op(MicroOp.SHL, p.src1, p.src2), p.word(0))


@program("src1 ÷ 2^src2 rounded down; src1's sign where src2 is not one of 0 to 31", sources=2)
def int_shift_right(p: Assembler) -> Value:
    return p.op(MicroOp.SRA, p.src1, p.select(_below(p, p.src2, 32), p.src2, p.word(31)))


@program("high word of x·2^src3, of its low word src1 and high word src2; src3 to 64", sources=3)
def long_shift_left_high(p: Assembler) -> Value:
    n = p.src3
    rest = p.op(MicroOp.XOR, n, p.word(31))  # 31 − n, for n up to 31
    from_low = p.op(MicroOp.SRL, p.op(MicroOp.SRL, p.src1, p.word(1)), rest)
    near = p.op(MicroOp.OR, p.op(MicroOp.SHL, p.src2, n), from_low)
    far = p.select(_below(p, n, 64), p.op(MicroOp.SHL, p.src1, n), p.word(0))
    return p.select(_below(p, n, 32), near, far)


@program("low word of x ÷ 2^src3, rounded down, of x's low and high word; src3 to 64", sources=3)
def long_shift_right_low(p: Assembler) -> Value:
    n = p.src3
    rest = p.op(MicroOp.XOR, n, p.word(31))
    from_high = p.op(MicroOp.SHL, p.op(MicroOp.SHL, p.src2, p.word(1)), rest)
    near = p.op(MicroOp.OR, p.op(MicroOp.SRL, p.src1, n), from_high)
    count = p.select(_below(p, n, 64), n, p.word(31))
    return p.select(_below(p, n, 32), near, p.op(MicroOp.SRA, p.src2, count))
