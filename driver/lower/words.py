# SPDX-License-Identifier: Apache-2.0
"""Python numbers as the bits that packets carry."""

from __future__ import annotations

import math
import struct

from driver.isa import DTYPE_BYTES, DType

FLOATS = (DType.FP32, DType.FP16, DType.BF16)
"""Types that the vector engine widens to fp32; all others are integers to it."""

INT32_MIN, INT32_MAX = -(1 << 31), (1 << 31) - 1
WORD_LIMIT = 1 << 32
"""Numbers from here on need more than a word."""

_FP16_MAX = 65520.0
"""Magnitudes from here on round to infinity."""


def fp32(value: float) -> float:
    """The fp32 number nearest to `value`; infinity beyond their range, as torch converts."""
    try:
        (rounded,) = struct.unpack("<f", struct.pack("<f", value))
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    return float(rounded)


def rounded(value: float, dtype: DType) -> float:
    """The number of a floating-point type that torch makes of a Python float: by way of fp32."""
    value = fp32(value)
    if dtype is DType.BF16:
        return float(_unpack("<f", _bf16(value) << 16))
    if dtype is DType.FP16 and abs(value) < _FP16_MAX:
        return float(struct.unpack("<e", struct.pack("<e", value))[0])
    if dtype is DType.FP16 and not math.isnan(value):
        return math.inf if value > 0 else -math.inf
    return value


def below(value: float, dtype: DType) -> float:
    """The largest number of a floating-point type below `value`, an fp32 number."""
    near = rounded(value, dtype)
    if near < value:
        return near
    bits, sign = element(near, dtype), 1 << (8 * DTYPE_BYTES[dtype] - 1)
    if not bits & ~sign:  # below a zero is the least negative number
        return _number(sign | 1, dtype)
    return _number(bits + (1 if bits & sign else -1), dtype)


def _number(bits: int, dtype: DType) -> float:
    """The number that an element of a floating-point type is."""
    if dtype is DType.FP16:
        return float(struct.unpack("<e", struct.pack("<H", bits))[0])
    return float(_unpack("<f", bits << 16 if dtype is DType.BF16 else bits))


def word(value: float) -> int:
    """The 32 bits of an immediate: an int in two's complement, a float as fp32.

    OverflowError when an int does not fit.
    """
    if hasattr(value, "__index__"):  # a whole number, numpy's too
        if not INT32_MIN <= value < WORD_LIMIT:
            raise OverflowError(value)
        return int(value) & 0xFFFF_FFFF
    return int(struct.unpack("<I", struct.pack("<f", fp32(value)))[0])


def integer_range(dtype: DType) -> range:
    """The numbers of an integer type."""
    count = 1 << 8 * DTYPE_BYTES[dtype]
    least = 0 if dtype is DType.UINT8 else -(count // 2)
    return range(least, least + count)


def wrapped(value: int, dtype: DType) -> int:
    """The number of an integer type that `value` is modulo the type's range."""
    held = integer_range(dtype)
    return (value - held.start) % (held.stop - held.start) + held.start


def element(value: float, dtype: DType) -> int:
    """The bits of `value` as an element, as torch fills: floats round, integers wrap."""
    if dtype not in FLOATS:
        return int(value) & ((1 << 8 * DTYPE_BYTES[dtype]) - 1)
    number = rounded(float(value), dtype)
    if dtype is DType.BF16:
        return _bf16(number)
    return int(
        struct.unpack("<H", struct.pack("<e", number))[0] if dtype is DType.FP16 else word(number)
    )


def _bf16(value: float) -> int:
    """The upper half of an fp32 number, rounded to nearest even."""
    bits = word(value)
    if math.isnan(value):
        return 0x7FC0
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def _unpack(code: str, bits: int) -> float:
    return float(struct.unpack(code, struct.pack("<I", bits))[0])
