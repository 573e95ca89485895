# SPDX-License-Identifier: Apache-2.0
"""int64 on 32-bit words: programs that see low and high words of 64-bit numbers as int32 sources.

The low word counts as unsigned. driver/lower/long.py joins these programs to 64-bit operations.
"""

from __future__ import annotations

from collections.abc import Callable

from driver.isa.assembler import Assembler, Family, Value
from driver.isa.micro import MicroOp, Reduce

FAMILY = Family("long")
program = FAMILY.program

_SIGN = 0x8000_0000
_LARGEST = 0x7FFF_FFFF
_HALF = 0xFFFF
_HALF_BITS = 16


def _unsigned_less(p: Assembler, a: Value, b: Value) -> Value:
    """1 where a is below b, both unsigned."""
    left, right = (p.op(MicroOp.XOR, x, p.word(_SIGN)) for x in (a, b))
    return p.op(MicroOp.ILT, left, right)


def _not(p: Assembler, a: Value) -> Value:
    """The other truth value."""
    return p.op(MicroOp.XOR, a, p.word(1))


def _sign(p: Assembler, a: Value) -> Value:
    """All bits set where an int32 is below 0, else none."""
    return p.op(MicroOp.SRA, a, p.word(31))


def _low_half(p: Assembler, a: Value) -> Value:
    return p.op(MicroOp.AND, a, p.word(_HALF))


def _high_half(p: Assembler, a: Value) -> Value:
    return p.op(MicroOp.SRL, a, p.word(_HALF_BITS))


# ---------------------------------------------------------------------- order
@program("src1 < src2, unsigned", sources=2)
def unsigned_less(p: Assembler) -> Value:
    return _unsigned_less(p, p.src1, p.src2)


def _long_less(p: Assembler) -> Value:
    equal = p.op(MicroOp.IEQ, p.src1, p.src2)
    return p.op(MicroOp.OR, p.op(MicroOp.ILT, p.src1, p.src2), p.op(MicroOp.AND, equal, p.src3))


def _long_equal(p: Assembler) -> Value:
    return p.op(MicroOp.AND, p.op(MicroOp.IEQ, p.src1, p.src2), p.src3)


def _negated(body: Callable[[Assembler], Value]) -> Callable[[Assembler], Value]:
    return lambda p: _not(p, body(p))


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
        return _not(p, truth) if negated else truth

    return body


def _less_words(p: Assembler, low: Value, high: Value, other: Value, other_high: Value) -> Value:
    tie = p.op(MicroOp.AND, p.op(MicroOp.IEQ, high, other_high), _unsigned_less(p, low, other))
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
    return _sign(p, p.src1)


# ---------------------------------------------------------------------- sums and products
@program("what src1 + src2 carries, unsigned: 0 or 1", sources=2)
def carry(p: Assembler) -> Value:
    return _unsigned_less(p, p.op(MicroOp.IADD, p.src1, p.src2), p.src1)


@program(
    "high word of x + the number, of x's low word src1 and high word src2",
    sources=2,
    imms=("low", "high"),
)
def long_add_imm_high(p: Assembler) -> Value:
    carried = _unsigned_less(p, p.op(MicroOp.IADD, p.src1, p.imm(0)), p.src1)
    return p.op(MicroOp.IADD, p.op(MicroOp.IADD, p.src2, p.imm(1)), carried)


@program("src1 − src2 − src3 modulo 2³²", sources=3)
def int_sub_sub(p: Assembler) -> Value:
    return p.op(MicroOp.ISUB, p.op(MicroOp.ISUB, p.src1, p.src2), p.src3)


@program("src1·src2 + src3 modulo 2³²", sources=3)
def int_mul_add(p: Assembler) -> Value:
    return p.op(MicroOp.IADD, p.op(MicroOp.IMUL, p.src1, p.src2), p.src3)


def _high_product(p: Assembler, a: Value, b: Value) -> Value:
    """a·b ÷ 2³², unsigned, rounded down: from the four products of halves."""
    a0, a1, b0, b1 = (half(p, x) for x in (a, b) for half in (_low_half, _high_half))
    low, inner, outer, high = (
        p.op(MicroOp.IMUL, x, y) for x, y in ((a0, b0), (a0, b1), (a1, b0), (a1, b1))
    )
    middle = p.op(MicroOp.IADD, _low_half(p, inner), _low_half(p, outer))
    middle = p.op(MicroOp.IADD, middle, _high_half(p, low))
    for part in (inner, outer, middle):
        high = p.op(MicroOp.IADD, high, _high_half(p, part))
    return high


@program("src1·src2 ÷ 2³², unsigned, rounded down", sources=2)
def high_product(p: Assembler) -> Value:
    return _high_product(p, p.src1, p.src2)


def _negated_high(p: Assembler, low: Value, high: Value) -> Value:
    """The high word of −x: the low word's complement carries where it is 0."""
    complement = p.op(MicroOp.XOR, high, p.word(-1))
    return p.op(MicroOp.IADD, complement, p.op(MicroOp.IEQ, low, p.word(0)))


@program("the high word of −x; src1 its low word or that of −x, src2 its high word", sources=2)
def long_neg_high(p: Assembler) -> Value:
    return _negated_high(p, p.src1, p.src2)


@program("the low word of |x|, of x's low word src1 and high word src2", sources=2)
def long_abs_low(p: Assembler) -> Value:
    sign = _sign(p, p.src2)
    return p.op(MicroOp.ISUB, p.op(MicroOp.XOR, p.src1, sign), sign)


@program("the high word of |x|; src1 x's low word or that of |x|, src2 x's high word", sources=2)
def long_abs_high(p: Assembler) -> Value:
    return p.select(_sign(p, p.src2), _negated_high(p, p.src1, p.src2), p.src2)


@program("−1, 0 or 1, the sign of x, of its low word src1 and high word src2", sources=2)
def long_sign(p: Assembler) -> Value:
    some = p.select(p.op(MicroOp.OR, p.src1, p.src2), p.word(1), p.word(0))
    return p.op(MicroOp.OR, some, _sign(p, p.src2))


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
    carried = _unsigned_less(p, _range_low(p), p.imm(0))
    high = p.op(MicroOp.IADD, _high_product(p, p.index, p.imm(2)), p.imm(1))
    high = p.op(MicroOp.IADD, high, p.op(MicroOp.IMUL, p.index, p.imm(3)))
    return p.op(MicroOp.IADD, high, carried)


# ---------------------------------------------------------------------- shifts
@program("src1 if src2 is 0 and src1 below 64, unsigned; else 64: a shift's count", sources=2)
def shift_count(p: Assembler) -> Value:
    fits = p.op(MicroOp.AND, p.op(MicroOp.IEQ, p.src2, p.word(0)), _below(p, p.src1, 64))
    return p.select(fits, p.src1, p.word(64))


def _below(p: Assembler, a: Value, limit: int) -> Value:
    return _unsigned_less(p, a, p.word(limit))


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


# ---------------------------------------------------------------------- conversions
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
    sign = _sign(p, p.src2)
    low = p.op(MicroOp.ISUB, p.op(MicroOp.XOR, p.src1, sign), sign)
    high = p.select(sign, _negated_high(p, p.src1, p.src2), p.src2)
    short = p.op(
        MicroOp.AND, p.op(MicroOp.IEQ, high, p.word(0)), _not(p, p.op(MicroOp.SRL, low, p.word(31)))
    )
    size = p.select(short, p.op(MicroOp.I2F, low), _short_float(p, low, high))
    return p.op(MicroOp.OR, size, p.op(MicroOp.AND, sign, p.word(_SIGN)))


def _float_words(p: Assembler, x: Value) -> tuple[Value, Value]:
    """|x| towards 0 as low and high word, for |x| < 2⁶³; 2⁶³ from there on."""
    size = p.abs(x)
    high = p.op(MicroOp.F2I_TRUNC, p.mul(size, p.f(2.0**-32)))
    rest = p.fma(p.op(MicroOp.I2F, high), p.f(-(2.0**32)), size)
    upper = _not(p, p.op(MicroOp.FLT, rest, p.f(2.0**31)))
    small = p.op(MicroOp.F2I_TRUNC, p.sub(rest, p.select(upper, p.f(2.0**31), p.f(0.0))))
    low = p.op(MicroOp.XOR, small, p.op(MicroOp.SHL, upper, p.word(31)))
    inside = p.op(MicroOp.FLT, size, p.f(2.0**63))
    return p.select(inside, low, p.word(0)), p.select(inside, high, p.word(_SIGN))


def _saturated(p: Assembler, x: Value, word: Value, largest: int) -> Value:
    """A word of an int64 made from x: `largest` for x ≥ 2⁶³, 0 for NaN."""
    beyond = p.op(MicroOp.FLE, p.f(2.0**63), x)
    word = p.select(beyond, p.word(largest), word)
    return p.select(p.op(MicroOp.FEQ, x, x), word, p.word(0))


def _float_low(p: Assembler, x: Value) -> Value:
    low, _ = _float_words(p, x)
    sign = _sign(p, x)
    return _saturated(p, x, p.op(MicroOp.ISUB, p.op(MicroOp.XOR, low, sign), sign), -1)


def _float_high(p: Assembler, x: Value) -> Value:
    low, high = _float_words(p, x)
    return _saturated(p, x, p.select(_sign(p, x), _negated_high(p, low, high), high), _LARGEST)


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


# ---------------------------------------------------------------------- halves and their sums
@program("src1 mod 2¹⁶", sources=1)
def low_half(p: Assembler) -> Value:
    return _low_half(p, p.src1)


@program("the upper 16 bits of src1, unsigned", sources=1)
def high_half(p: Assembler) -> Value:
    return _high_half(p, p.src1)


@program("Σ src1 mod 2¹⁶, modulo 2³²", sources=1, reduce=Reduce.IADD)
def sum_low_halves(p: Assembler) -> Value:
    return _low_half(p, p.src1)


@program("Σ of the upper 16 bits of src1, modulo 2³²", sources=1, reduce=Reduce.IADD)
def sum_high_halves(p: Assembler) -> Value:
    return _high_half(p, p.src1)


@program(
    "Σ −1 for each src1 below 0: the sum of an int32's high words", sources=1, reduce=Reduce.IADD
)
def sum_sign_words(p: Assembler) -> Value:
    return _sign(p, p.src1)


@program("low word of src1 + 2¹⁶·src2", sources=2)
def halves_low(p: Assembler) -> Value:
    return p.op(MicroOp.IADD, p.src1, p.op(MicroOp.SHL, p.src2, p.word(_HALF_BITS)))


@program("high word of src1 + 2¹⁶·src2 + 2³²·src3, for src1 and src2 up to 2³² − 2¹⁶", sources=3)
def halves_high(p: Assembler) -> Value:
    carried = p.op(MicroOp.IADD, p.src2, _high_half(p, p.src1))
    return p.op(MicroOp.IADD, p.src3, _high_half(p, carried))


def _low_extreme(identity: int) -> Callable[[Assembler], Value]:
    def body(p: Assembler) -> Value:
        ordered = p.op(MicroOp.XOR, p.src1, p.word(_SIGN))
        return p.select(p.op(MicroOp.IEQ, p.src2, p.src3), ordered, p.word(identity))

    return body


for _name, _text, _reduce, _identity in (
    ("amax", "largest", Reduce.IMAX, _SIGN),
    ("amin", "smallest", Reduce.IMIN, _LARGEST),
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
    return p.select(p.src1, p.index, p.word(_LARGEST))
