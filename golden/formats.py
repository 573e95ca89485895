# SPDX-License-Identifier: Apache-2.0
"""The NPU's number formats in numpy: bits to values, and correct rounding of values.

Values are float64 (int64 for the integer formats), which hold every element exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from driver.isa import DTYPE_BYTES, DType

Floats = npt.NDArray[np.float64]
Values = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]
Bits = npt.NDArray[Any]
"""Unsigned integers of the element's size."""
UINTS: dict[int, type[np.unsignedinteger[Any]]] = {
    **{1: np.uint8, 2: np.uint16},
    **{4: np.uint32, 8: np.uint64},
}
"""Bytes of an element → the type of its bits."""


@dataclass(frozen=True)
class FloatFormat:
    """An IEEE 754 binary format with subnormals."""

    precision: int
    """Bits of the significand, the hidden one included."""
    min_exponent: int
    """log2 of the smallest normal number."""
    max_finite: float

    @property
    def min_quantum(self) -> int:
        """log2 of the smallest subnormal number, which is the spacing of all of them."""
        return self.min_exponent - self.precision + 1

    @property
    def unit_roundoff(self) -> float:
        """u: a rounding to nearest changes a normal number by at most this fraction of it."""
        return 2.0**-self.precision


FLOAT_FORMATS: dict[DType, FloatFormat] = {
    DType.FP32: FloatFormat(24, -126, (2 - 2.0**-23) * 2.0**127),
    DType.FP16: FloatFormat(11, -14, (2 - 2.0**-10) * 2.0**15),
    DType.BF16: FloatFormat(8, -126, (2 - 2.0**-7) * 2.0**127),
}

_STORED_AS: dict[DType, str] = {
    DType.FP32: "<f4",
    DType.FP16: "<f2",
    DType.BF16: "<u2",
    DType.INT8: "i1",
    DType.INT32: "<i4",
    DType.UINT8: "u1",
    DType.INT64: "<i8",
}


def decode(raw: bytes | npt.NDArray[Any], dtype: DType) -> Values:
    """Bytes as they lie in memory (little endian) to values, exactly.

    Bytes, or an array of unsigned integers of the element's size whose shape is kept.
    """
    stored = np.dtype(_STORED_AS[dtype])
    if isinstance(raw, bytes):
        bits = np.frombuffer(raw, dtype=stored)
    else:
        if raw.dtype.itemsize != DTYPE_BYTES[dtype]:
            raise ValueError(f"{raw.dtype} elements cannot hold the bits of {dtype.name}")
        bits = np.ascontiguousarray(raw).view(stored)
    if dtype not in FLOAT_FORMATS:
        return bits.astype(np.int64)
    if dtype is DType.BF16:
        bits = (bits.astype(np.uint32) << 16).view(np.float32)
    with np.errstate(invalid="ignore"):  # widening a signalling NaN is not an event here
        return bits.astype(np.float64)


def round_to(values: Floats, dtype: DType) -> Floats:
    """Round float64 values to the nearest of a format, ties to even; overflow gives infinity.

    torch's own conversion from float64 to bfloat16 or float16 rounds twice (by way of float32):
    1 + 2^-8 + 2^-40 becomes 1 instead of 1 + 2^-7. This one rounds once.
    """
    form = FLOAT_FORMATS[dtype]
    finite = np.isfinite(values)
    safe = np.where(finite, values, 0.0)
    _, exponent = np.frexp(safe)  # |value| in [2^(exponent-1), 2^exponent)
    quantum = np.maximum(exponent - form.precision, form.min_quantum)
    # Scaling by a power of two is exact; rint is round half to even.
    rounded = np.ldexp(np.rint(np.ldexp(safe, -quantum)), quantum)
    overflowed = np.where(np.abs(rounded) > form.max_finite, np.copysign(np.inf, safe), rounded)
    return np.where(finite, overflowed, values)
