# SPDX-License-Identifier: Apache-2.0
"""The arithmetic of docs/numerics.md on bit patterns, in integers only.

Slow and plain: no floats and no numpy, so that it shares nothing with the host's FPU, which the
cmodel uses, nor with the RTL. It checks both, and has the last word when they differ. Knows
nothing of packets or memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt

from driver.isa import DType

_WORD = 0xFFFF_FFFF


@dataclass(frozen=True)
class Format:
    """A binary interchange format: sign, `exponent_bits`, `fraction_bits`."""

    exponent_bits: int
    fraction_bits: int

    @property
    def bias(self) -> int:
        """Added to the exponent of a normal number."""
        return (1 << (self.exponent_bits - 1)) - 1

    @property
    def sign_bit(self) -> int:
        """Position of the sign."""
        return self.exponent_bits + self.fraction_bits

    @property
    def infinity(self) -> int:
        """Bits of +inf."""
        return ((1 << self.exponent_bits) - 1) << self.fraction_bits

    @property
    def nan(self) -> int:
        """Bits of the one NaN that results may have: positive, quiet, no payload."""
        return self.infinity | (1 << (self.fraction_bits - 1))

    @property
    def least_exponent(self) -> int:
        """Exponent of the last place of subnormals: every finite value is an integer · 2^this."""
        return 1 - self.bias - self.fraction_bits


FP32 = Format(exponent_bits=8, fraction_bits=23)
FP16 = Format(exponent_bits=5, fraction_bits=10)
BF16 = Format(exponent_bits=8, fraction_bits=7)

FORMATS: dict[DType, Format] = {DType.FP32: FP32, DType.FP16: FP16, DType.BF16: BF16}


def is_nan(fmt: Format, bits: int) -> bool:
    """True for every NaN encoding, quiet or signalling, of either sign."""
    return _magnitude(fmt, bits) > fmt.infinity


def is_infinite(fmt: Format, bits: int) -> bool:
    """True for the two infinities."""
    return _magnitude(fmt, bits) == fmt.infinity


def is_zero(fmt: Format, bits: int) -> bool:
    """True for the two zeros."""
    return _magnitude(fmt, bits) == 0


def sign_of(fmt: Format, bits: int) -> int:
    """1 when the sign bit is set."""
    return bits >> fmt.sign_bit


def _magnitude(fmt: Format, bits: int) -> int:
    return bits & ((1 << fmt.sign_bit) - 1)


def _decode(fmt: Format, bits: int) -> tuple[int, int]:
    """A finite value as (signed integer, exponent): integer · 2^exponent."""
    fraction = bits & ((1 << fmt.fraction_bits) - 1)
    exponent = _magnitude(fmt, bits) >> fmt.fraction_bits
    if exponent:
        fraction |= 1 << fmt.fraction_bits
    value = -fraction if sign_of(fmt, bits) else fraction
    return value, fmt.least_exponent + max(exponent - 1, 0)


def _shift_right_even(value: int, amount: int) -> int:
    """value / 2^amount to the nearest integer, ties to even. `amount` may be negative."""
    if amount <= 0:
        return value << -amount
    quotient, remainder = value >> amount, value & ((1 << amount) - 1)
    half = 1 << (amount - 1)
    return quotient + (remainder > half or (remainder == half and quotient & 1 == 1))


def _encode(fmt: Format, sign: int, magnitude: int, exponent: int) -> int:
    """magnitude · 2^exponent rounded to nearest even; overflow becomes infinity.

    `magnitude` is not negative; zero takes `sign` as it is.
    """
    if magnitude == 0:
        return sign << fmt.sign_bit
    top = magnitude.bit_length() + exponent  # the value lies in [2^(top-1), 2^top)
    last_place = max(top - 1 - fmt.fraction_bits, fmt.least_exponent)
    rounded = _shift_right_even(magnitude, last_place - exponent)
    # The hidden bit of a normal number adds one to the exponent field; so does a carry.
    field = (last_place - fmt.least_exponent) << fmt.fraction_bits
    return (sign << fmt.sign_bit) | min(field + rounded, fmt.infinity)


def fma(a: int, b: int, c: int, fmt: Format = FP32) -> int:
    """a·b + c, rounded once. Operands and result are bits of `fmt`."""
    product_sign = sign_of(fmt, a) ^ sign_of(fmt, b)
    if is_nan(fmt, a) or is_nan(fmt, b) or is_nan(fmt, c):
        return fmt.nan
    if is_infinite(fmt, a) or is_infinite(fmt, b):
        if is_zero(fmt, a) or is_zero(fmt, b):
            return fmt.nan
        if is_infinite(fmt, c) and sign_of(fmt, c) != product_sign:
            return fmt.nan
        return (product_sign << fmt.sign_bit) | fmt.infinity
    if is_infinite(fmt, c):
        return c
    value_a, exponent_a = _decode(fmt, a)
    value_b, exponent_b = _decode(fmt, b)
    value_c, exponent_c = _decode(fmt, c)
    exponent = min(exponent_a + exponent_b, exponent_c)
    total = (value_a * value_b << (exponent_a + exponent_b - exponent)) + (
        value_c << (exponent_c - exponent)
    )
    # An exact zero: like signs keep theirs, unlike signs give +0.
    sign = product_sign & sign_of(fmt, c) if total == 0 else int(total < 0)
    return _encode(fmt, sign, abs(total), exponent)


def div(a: int, b: int, fmt: Format = FP32) -> int:
    """a ÷ b, rounded once."""
    sign = sign_of(fmt, a) ^ sign_of(fmt, b)
    infinite_a, infinite_b = is_infinite(fmt, a), is_infinite(fmt, b)
    zero_a, zero_b = is_zero(fmt, a), is_zero(fmt, b)
    if is_nan(fmt, a) or is_nan(fmt, b) or (infinite_a and infinite_b) or (zero_a and zero_b):
        return fmt.nan
    if infinite_a or zero_b:
        return (sign << fmt.sign_bit) | fmt.infinity
    if infinite_b or zero_a:
        return sign << fmt.sign_bit
    value_a, exponent_a = _decode(fmt, a)
    value_b, exponent_b = _decode(fmt, b)
    # Enough quotient bits that the rounding point lies above the sticky bit.
    extra = 2 * fmt.fraction_bits + 4
    quotient, remainder = divmod(abs(value_a) << extra, abs(value_b))
    sticky = (quotient << 1) | (remainder != 0)
    return _encode(fmt, sign, sticky, exponent_a - exponent_b - extra - 1)


def sqrt(a: int, fmt: Format = FP32) -> int:
    """The square root, rounded once; of −0 it is −0."""
    if is_zero(fmt, a):
        return a
    if is_nan(fmt, a) or sign_of(fmt, a):
        return fmt.nan
    if is_infinite(fmt, a):
        return a
    value, exponent = _decode(fmt, a)
    extra = 2 * fmt.fraction_bits + 4 + exponent % 2  # the exponent must become even
    scaled = value << extra
    root = isqrt(scaled)
    sticky = (root << 1) | (root * root != scaled)
    return _encode(fmt, 0, sticky, (exponent - extra) // 2 - 1)


def _ordered(fmt: Format, bits: int) -> int:
    """An integer of the same order as the number, −0 just below +0."""
    magnitude = _magnitude(fmt, bits)
    return -magnitude - 1 if sign_of(fmt, bits) else magnitude


def maximum(a: int, b: int, fmt: Format = FP32) -> int:
    """The larger, with −0 below +0; NaN if either is."""
    if is_nan(fmt, a) or is_nan(fmt, b):
        return fmt.nan
    return max(a, b, key=lambda bits: _ordered(fmt, bits))


def minimum(a: int, b: int, fmt: Format = FP32) -> int:
    """The smaller, with −0 below +0; NaN if either is."""
    if is_nan(fmt, a) or is_nan(fmt, b):
        return fmt.nan
    return min(a, b, key=lambda bits: _ordered(fmt, bits))


def compare(a: int, b: int, fmt: Format = FP32) -> int | None:
    """−1, 0 or 1 as a is below, equal to or above b; None with a NaN. −0 equals +0."""
    if is_nan(fmt, a) or is_nan(fmt, b):
        return None
    left, right = (0 if is_zero(fmt, x) else _ordered(fmt, x) for x in (a, b))
    return (left > right) - (left < right)


def from_int(value: int, fmt: Format = FP32) -> int:
    """An integer to the nearest number, ties to even."""
    return _encode(fmt, int(value < 0), abs(value), 0)


def to_int32(a: int, *, truncate: bool, fmt: Format = FP32) -> int:
    """To the nearest int32, ties to even, or towards zero; saturates, NaN gives 0. Bits."""
    if is_nan(fmt, a):
        return 0
    least, greatest = -(1 << 31), (1 << 31) - 1
    if is_infinite(fmt, a):
        return (least if sign_of(fmt, a) else greatest) & _WORD
    value, exponent = _decode(fmt, a)
    magnitude = abs(value)
    if truncate and exponent < 0:
        magnitude >>= -exponent
    else:
        magnitude = _shift_right_even(magnitude, -exponent)
    whole = -magnitude if value < 0 else magnitude
    return min(max(whole, least), greatest) & _WORD


def convert(source: Format, target: Format, bits: int) -> int:
    """Widens exactly or narrows with one rounding; NaN becomes the target's canonical one."""
    if is_nan(source, bits):
        return target.nan
    sign = sign_of(source, bits)
    if is_infinite(source, bits):
        return (sign << target.sign_bit) | target.infinity
    value, exponent = _decode(source, bits)
    return _encode(target, sign, abs(value), exponent)


def widen(dtype: DType, bits: int) -> int:
    """Bits of a float type to the equal fp32."""
    return convert(FORMATS[dtype], FP32, bits)


def narrow(dtype: DType, bits: int) -> int:
    """Fp32 bits to a float type, to nearest even."""
    return convert(FP32, FORMATS[dtype], bits)


def mac8(a: int, b: int, acc: int) -> int:
    """acc + a·b modulo 2^32, of int8 bits a and b and int32 bits acc."""
    return (acc + _signed8(a) * _signed8(b)) & _WORD


def _signed8(bits: int) -> int:
    return (bits & 0xFF) - ((bits & 0x80) << 1)


def chain(a: Sequence[int], b: Sequence[int], c: int | None, src: DType, dst: DType) -> int:
    """One element of a MATMUL: bits of a[0..K), b[0..K) in `src`, c and the result in `dst`.

    `c` is the old value for ACCUMULATE, None to start from zero. The chain ascends in k.
    """
    if src is DType.INT8:
        acc = c or 0
        for x, y in zip(a, b, strict=True):
            acc = mac8(x, y, acc)
        return acc
    acc = 0 if c is None else widen(dst, c)
    for x, y in zip(a, b, strict=True):
        acc = fma(widen(src, x), widen(src, y), acc)
    return narrow(dst, acc)
