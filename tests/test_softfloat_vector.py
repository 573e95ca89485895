# SPDX-License-Identifier: Apache-2.0
"""Division, roots, order and conversions of golden.softfloat against exact fractions; vector
programs and reductions of golden.softvector against their definition."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from cmodel_util import special_bits
from test_softfloat import assert_nearest_even, value_of

from driver.isa import DType
from driver.isa.micro import REDUCE_IDENTITY, Reduce
from driver.isa.programs import PROGRAMS
from golden import softfloat, softvector
from golden.softfloat import BF16, FP16, FP32, Format

NAN, INF, NEG = FP32.nan, FP32.infinity, 1 << 31
ONE, TWO, THREE = 0x3F80_0000, 0x4000_0000, 0x4040_0000
FORMATS = pytest.mark.parametrize("fmt", [FP32, FP16, BF16], ids=["fp32", "fp16", "bf16"])


def finite(fmt: Format, count: int) -> list[int]:
    """Random finite patterns, chosen ones among them."""
    rng = random.Random(count)
    chosen = special_bits(fmt) + [rng.getrandbits(fmt.sign_bit + 1) for _ in range(count)]
    return [b for b in chosen if not (softfloat.is_nan(fmt, b) or softfloat.is_infinite(fmt, b))]


@FORMATS
def test_quotients_are_the_nearest(fmt: Format) -> None:
    rng, values = random.Random(1), finite(fmt, 600)
    compared = 0
    for a in values:
        b = rng.choice(values)
        if softfloat.is_zero(fmt, b):
            continue
        exact = value_of(fmt, a) / value_of(fmt, b)
        assert_nearest_even(fmt, exact, softfloat.div(a, b, fmt))
        compared += 1
    assert compared > 500


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (ONE, 0, INF),
        (ONE, NEG, INF | NEG),
        (ONE | NEG, 0, INF | NEG),
        (0, 0, NAN),
        (NEG, 0, NAN),
        (INF, INF | NEG, NAN),
        (INF, 0, INF),
        (INF | NEG, ONE, INF | NEG),
        (ONE, INF | NEG, NEG),
        (0, ONE | NEG, NEG),
        (NAN, ONE, NAN),
        (ONE, 0xFFFF_FFFF, NAN),
        (1, TWO, 0),
        (3, TWO, 2),
    ],
)
def test_quotients_at_the_edges(a: int, b: int, expected: int) -> None:
    assert softfloat.div(a, b) == expected


@FORMATS
def test_roots_are_the_nearest(fmt: Format) -> None:
    compared = 0
    for bits in finite(fmt, 600):
        if softfloat.sign_of(fmt, bits) or softfloat.is_zero(fmt, bits):
            continue
        square, root = value_of(fmt, bits), softfloat.sqrt(bits, fmt)
        # Halfway points to the neighbours, squared: no root in between.
        above = (value_of(fmt, root) + value_of(fmt, root + 1)) / 2
        below = (value_of(fmt, root) + value_of(fmt, root - 1)) / 2
        assert below**2 < square < above**2
        compared += 1
    assert compared > 250


def test_roots_at_the_edges() -> None:
    edges = {0: 0, NEG: NEG, INF: INF, INF | NEG: NAN, ONE | NEG: NAN, NAN: NAN, ONE: ONE}
    assert {a: softfloat.sqrt(a) for a in edges} == edges


@FORMATS
def test_order(fmt: Format) -> None:
    rng, values = random.Random(2), finite(fmt, 300)
    for a in values:
        b = rng.choice([*values, a])
        left, right = value_of(fmt, a), value_of(fmt, b)
        assert softfloat.compare(a, b, fmt) == (left > right) - (left < right)
        if left != right:
            assert softfloat.maximum(a, b, fmt) == (a if left > right else b)
            assert softfloat.minimum(a, b, fmt) == (b if left > right else a)
    sign = 1 << fmt.sign_bit
    assert softfloat.compare(0, sign, fmt) == 0
    for a, b in ((0, sign), (sign, 0)):
        assert softfloat.maximum(a, b, fmt) == 0
        assert softfloat.minimum(a, b, fmt) == sign
    for a, b in ((fmt.nan, 0), (0, fmt.infinity + 1)):
        assert softfloat.compare(a, b, fmt) is None
        assert softfloat.maximum(a, b, fmt) == softfloat.minimum(a, b, fmt) == fmt.nan


def test_integers_become_the_nearest_number() -> None:
    rng = random.Random(3)
    for value in [0, 1, -1, (1 << 24) + 1, (1 << 24) + 3, -(1 << 31), (1 << 31) - 1] + [
        rng.randrange(-(1 << 31), 1 << 31) for _ in range(300)
    ]:
        assert_nearest_even(FP32, Fraction(value), softfloat.from_int(value))


@pytest.mark.parametrize("truncate", [False, True])
def test_numbers_become_integers(*, truncate: bool) -> None:
    compared = 0
    for bits in finite(FP32, 2000):
        exact = value_of(FP32, bits)
        whole = int(exact) if truncate else round(exact)  # round() takes ties to even
        limited = min(max(whole, -(1 << 31)), (1 << 31) - 1)
        assert softvector.signed(softfloat.to_int32(bits, truncate=truncate)) == limited
        compared += 1
    assert compared > 1500
    beyond = {INF: (1 << 31) - 1, INF | NEG: 1 << 31, NAN: 0, 0xFFC0_0001: 0}
    assert {a: softfloat.to_int32(a, truncate=truncate) for a in beyond} == beyond


def test_elements_enter_and_leave_by_their_types_rules() -> None:
    words = {
        DType.INT8: (0x80, 0xFFFF_FF80, 0x80),
        DType.UINT8: (0x80, 0x80, 0x80),
        DType.INT64: (0x1_8000_0000, 0x8000_0000, 0xFFFF_FFFF_8000_0000),
        DType.FP16: (0x3C00, ONE, 0x3C00),
        DType.BF16: (0x7F81, NAN, 0x7FC0),
        DType.FP32: (0x7F80_0001, 0x7F80_0001, 0x7F80_0001),
    }
    for dtype, (bits, word, back) in words.items():
        assert softvector.load(dtype, bits) == word
        assert softvector.store(dtype, word) == back


def test_a_row_is_summed_in_lanes_and_then_by_the_tree() -> None:
    big, small = 0x4B80_0000, ONE  # 2^24 swallows a 1, twice
    row = [small] * 16 + [0] * 16
    row[0] = big
    row[16] = small
    # Lane 0 holds 2^24 + 1 = 2^24; the tree adds 15 ones before they meet it.
    assert softvector.reduce(Reduce.FADD, row) == softfloat.from_int((1 << 24) + 8 + 4 + 2 + 1 - 1)
    assert softvector.reduce(Reduce.FADD, [NEG] * 5) == NEG
    assert softvector.reduce(Reduce.IADD, [0xFFFF_FFFF, 3]) == 2
    assert softvector.reduce(Reduce.FMAX, [ONE, NAN, TWO]) == NAN
    for kind in Reduce:
        if kind is not Reduce.NONE:
            assert softvector.reduce(kind, []) == REDUCE_IDENTITY[kind]


def test_programs_see_sources_immediates_constants_and_the_index() -> None:
    def run(name: str, *sources: int, imms: tuple[int, ...] = (), index: int = 0) -> int:
        (result,) = softvector.run(PROGRAMS[name], sources, imms, index)
        return result

    assert run("add", ONE, TWO, imms=(TWO,)) == softfloat.from_int(5)
    assert run("mul", TWO, THREE) == softfloat.from_int(6)
    assert run("int_range", imms=(7, 3), index=5) == 22
    assert run("where", 0, ONE, TWO) == TWO
    assert run("clamp", softfloat.from_int(9), imms=(ONE, THREE)) == THREE
