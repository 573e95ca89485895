# SPDX-License-Identifier: Apache-2.0
"""Philox4x32-10 and the numbers made of its words, in numpy, written from docs/numerics.md.

Shares nothing with the vector programs or the lowering. Knows no op.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from driver.isa import DType
from driver.random_stream import RandomStream
from golden.formats import FLOAT_FORMATS, Floats

Words = npt.NDArray[np.uint64]
"""Words of 32 bits, in 64, so that products do not wrap."""

ROUNDS = 10
_M = (0xD2511F53, 0xCD9E8D57)
_KEY_STEP = (0x9E3779B9, 0xBB67AE85)
_WORD = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)


def philox(counter: tuple[Words, Words, Words, Words], key: tuple[int, int]) -> tuple[Words, ...]:
    """The four output words of each counter."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(ROUNDS):
        low, high = c0 * np.uint64(_M[0]), c2 * np.uint64(_M[1])
        c0, c1, c2, c3 = (
            (high >> _32) ^ c1 ^ np.uint64(k0),
            high & _WORD,
            (low >> _32) ^ c3 ^ np.uint64(k1),
            low & _WORD,
        )
        k0, k1 = (k0 + _KEY_STEP[0]) & 0xFFFFFFFF, (k1 + _KEY_STEP[1]) & 0xFFFFFFFF
    return c0, c1, c2, c3


def words(stream: RandomStream, count: int) -> Words:
    """The words of elements 0 … count − 1."""
    block = np.arange(-(-count // 4), dtype=np.uint64)
    fixed = (0, stream.op & 0xFFFFFFFF, stream.op >> 32 & 0xFFFFFFFF)
    others = [np.full_like(block, word) for word in fixed]
    key = (stream.seed & 0xFFFFFFFF, stream.seed >> 32 & 0xFFFFFFFF)
    made = philox((block, others[0], others[1], others[2]), key)
    return np.stack(made, axis=-1).reshape(-1)[:count]


def unit(drawn: Words, dtype: DType = DType.FP32) -> Floats:
    """U_d with the bits of a type's significand."""
    bits = FLOAT_FORMATS[dtype].precision
    whole: Floats = (drawn >> np.uint64(32 - bits)).astype(np.float64)
    return whole * 2.0**-bits


def open_unit(drawn: Words) -> Floats:
    """O, never 0 or 1."""
    whole: Floats = (drawn >> np.uint64(9)).astype(np.float64)
    return (2 * whole + 1) * 2.0**-24


def normal(drawn: Words) -> Floats:
    """z of an even number of words, in float64."""
    radius = np.sqrt(-2 * np.log(open_unit(drawn[0::2])))
    angle = 2 * np.pi * (drawn[1::2].astype(np.float64) * 2.0**-32)
    pairs = np.stack((radius * np.cos(angle), radius * np.sin(angle)), axis=-1)
    return np.asarray(pairs.reshape(-1))


def integers(drawn: Words, low: int, count: int) -> npt.NDArray[np.int64]:
    """low + hi(w·count)."""
    return (drawn * np.uint64(count) >> _32).astype(np.int64) + low


def fma(a: Floats, b: float, c: float) -> Floats:
    """a·b + c rounded once to fp32, for fp32 operands whose product float64 holds exactly.

    The sum in float64 is rounded to odd first, so that the second rounding is the only one.
    """
    product = a * b
    total = product + c
    back = total - product
    lost = (product - (total - back)) + (c - back)
    bits = total.view(np.int64)
    up = (lost > 0) == (total > 0)
    odd = np.where((lost != 0) & (bits & 1 == 0), bits + np.where(up, 1, -1), bits)
    return odd.view(np.float64).astype(np.float32).astype(np.float64)
