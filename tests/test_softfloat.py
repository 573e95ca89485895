# SPDX-License-Identifier: Apache-2.0
"""golden.softfloat against exact fractions and against the examples of docs/numerics.md."""

from __future__ import annotations

import random
import struct
from fractions import Fraction

import pytest
from cmodel_util import special_bits

from driver.isa import DType
from golden import softfloat
from golden.softfloat import BF16, FP16, FP32, Format

NAN, INF, NEG = FP32.nan, FP32.infinity, 1 << 31
ONE = 0x3F80_0000


def value_of(fmt: Format, bits: int) -> Fraction:
    """The exact value of a finite pattern, straight from the definition of the format."""
    fraction = bits & ((1 << fmt.fraction_bits) - 1)
    exponent = (bits >> fmt.fraction_bits) & ((1 << fmt.exponent_bits) - 1)
    sign = -1 if bits >> fmt.sign_bit else 1
    if exponent == 0:
        return sign * Fraction(fraction, 1 << fmt.fraction_bits) * Fraction(2) ** (1 - fmt.bias)
    significand = 1 + Fraction(fraction, 1 << fmt.fraction_bits)
    return sign * significand * Fraction(2) ** (exponent - fmt.bias)


def assert_nearest_even(fmt: Format, exact: Fraction, bits: int) -> None:
    """`bits` is the number nearest to `exact`; its neighbours are farther, or as far but odd."""
    sign_bit = 1 << fmt.sign_bit
    if exact != 0:
        assert bool(bits & sign_bit) == (exact < 0)
    magnitude, size = bits & (sign_bit - 1), abs(exact)
    top = value_of(fmt, fmt.infinity - 1)
    ulp = top - value_of(fmt, fmt.infinity - 2)
    if magnitude == fmt.infinity:
        assert size >= top + ulp / 2
        return
    error = abs(value_of(fmt, magnitude) - size)
    above = top + ulp if magnitude + 1 == fmt.infinity else value_of(fmt, magnitude + 1)
    neighbours = [above] + ([value_of(fmt, magnitude - 1)] if magnitude else [])
    for neighbour in neighbours:
        distance = abs(neighbour - size)
        assert error < distance or (error == distance and magnitude % 2 == 0)


@pytest.mark.parametrize(
    ("a", "b", "c", "expected"),
    [
        (0, INF, ONE, NAN),
        (INF, 0, NAN, NAN),
        (INF, ONE, INF | NEG, NAN),
        (INF, ONE, INF, INF),
        (INF | NEG, ONE, ONE, INF | NEG),
        (ONE, ONE, INF | NEG, INF | NEG),
        (ONE, ONE, 0xFFFF_FFFF, NAN),
        (0x7F80_0001, ONE, ONE, NAN),
        (ONE | NEG, 0, NEG, NEG),  # (-0) + (-0)
        (ONE, ONE, ONE | NEG, 0),  # exact cancellation
        (ONE | NEG, 0, 0, 0),
        (0x0080_0000, 0x3F00_0000, 0, 0x0040_0000),  # a subnormal result
        (1, 0x3F00_0000, 0, 0),  # a tie between zero and the least subnormal
        (1 | NEG, 0x3F00_0000, 0, NEG),  # rounds to zero, keeps the sign
        (3, 0x3F00_0000, 0, 2),  # a tie goes to even
        (0x7F7F_FFFF, 0x4000_0000, 0, INF),
    ],
)
def test_fma_examples_of_the_contract(a: int, b: int, c: int, expected: int) -> None:
    assert softfloat.fma(a, b, c) == expected


def test_fma_rounds_the_exact_result_to_nearest_even() -> None:
    rng = random.Random(1)
    compared = 0
    for _ in range(6000):
        a, b, c = (rng.getrandbits(32) for _ in range(3))
        if rng.random() < 0.5:  # operands of like size, so that c matters
            a, b = (ONE + rng.getrandbits(24) for _ in range(2))
            c = (ONE + rng.getrandbits(25)) | rng.getrandbits(1) << 31
        if any(bits & INF == INF for bits in (a, b, c)):
            continue
        exact = value_of(FP32, a) * value_of(FP32, b) + value_of(FP32, c)
        assert_nearest_even(FP32, exact, softfloat.fma(a, b, c))
        compared += 1
    assert compared > 5500


@pytest.mark.parametrize(("fmt", "dtype"), [(FP16, DType.FP16), (BF16, DType.BF16)])
def test_widening_is_exact_for_every_pattern(fmt: Format, dtype: DType) -> None:
    compared = 0
    for bits in range(1 << 16):
        wide = softfloat.widen(dtype, bits)
        if softfloat.is_nan(fmt, bits):
            assert wide == NAN
        elif softfloat.is_infinite(fmt, bits):
            assert wide == (INF | (bits >> 15) << 31)
        else:
            assert value_of(FP32, wide) == value_of(fmt, bits)
            assert wide >> 31 == bits >> 15
        compared += 1
    assert compared == 65536


@pytest.mark.parametrize(("fmt", "dtype"), [(FP16, DType.FP16), (BF16, DType.BF16)])
def test_narrowing_rounds_to_nearest_even(fmt: Format, dtype: DType) -> None:
    rng = random.Random(2)
    compared = 0
    finite = [bits for bits in special_bits(FP32) if bits & INF != INF]
    near_overflow = [0x477F_E000 + d for d in range(-0x1002, 0x1003, 0x801)]
    for bits in [*finite, *near_overflow, *(rng.getrandbits(32) for _ in range(8000))]:
        if bits & INF == INF:
            continue
        assert_nearest_even(fmt, value_of(FP32, bits), softfloat.narrow(dtype, bits))
        compared += 1
    assert compared > 7900


def test_narrowing_to_fp16_agrees_with_the_struct_module() -> None:
    rng = random.Random(3)
    compared = 0
    for _ in range(20000):
        bits = rng.getrandbits(1) << 31 | rng.randrange(0x3280_0000, 0x477F_F000)
        (value,) = struct.unpack("<f", struct.pack("<I", bits))
        (expected,) = struct.unpack("<H", struct.pack("<e", value))
        assert softfloat.narrow(DType.FP16, bits) == expected
        compared += 1
    assert compared == 20000


@pytest.mark.parametrize(
    ("dtype", "bits", "expected"),
    [
        (DType.FP16, 0x477F_EFFF, 0x7BFF),  # just below 65520
        (DType.FP16, 0x477F_F000, 0x7C00),  # 65520
        (DType.FP16, 0x3300_0000, 0),  # 2^-25, a tie with zero
        (DType.FP16, 0x3300_0001, 1),
        (DType.FP16, 0xFFFF_FFFF, 0x7E00),
        (DType.BF16, 0x7F80_0001, 0x7FC0),
        (DType.BF16, 0x7F7F_8000, 0x7F80),
        (DType.BF16, 0x3F80_8000, 0x3F80),
        (DType.BF16, 0x3F81_8000, 0x3F82),
    ],
)
def test_narrowing_examples(dtype: DType, bits: int, expected: int) -> None:
    assert softfloat.narrow(dtype, bits) == expected


def test_mac8_wraps_modulo_2_to_the_32() -> None:
    assert softfloat.mac8(0x80, 0x80, 0x7FFF_FFFF) == 0x8000_3FFF
    assert softfloat.mac8(0xFF, 0x01, 0) == 0xFFFF_FFFF
    assert softfloat.mac8(0x7F, 0x7F, 0xFFFF_FFFF) == 0x3F00


def test_chain_rounds_at_every_step_and_narrows_once() -> None:
    tiny, one = 0x1000, 0x3C00  # 2^-11 in fp16, and 1
    # 1 + 2^-11 + 2^-11 keeps both terms in fp32 and narrows to 1 + 2^-10.
    assert softfloat.chain([one, tiny, tiny], [one] * 3, None, DType.FP16, DType.FP16) == 0x3C01
    # Rounded after each step it would have stayed 1: so C, already fp16, loses nothing either.
    assert softfloat.chain([tiny, tiny], [one] * 2, one, DType.FP16, DType.FP16) == 0x3C01


def test_chain_without_c_starts_from_plus_zero() -> None:
    minus_zero = 1 << 31
    assert softfloat.chain([minus_zero], [ONE], None, DType.FP32, DType.FP32) == 0
    assert softfloat.chain([minus_zero], [ONE], minus_zero, DType.FP32, DType.FP32) == minus_zero
