# SPDX-License-Identifier: Apache-2.0
"""An int64 tensor as int32 words: the low word at the element's address, the high word behind it.

Engines compute with 32-bit words, so 64-bit operations are passes over these views.
"""

from __future__ import annotations

from dataclasses import replace

from driver.isa import DType
from driver.runtime.views import TensorView

_WORD_BYTES = 4
_WORD_MASK = 0xFFFF_FFFF
_WORDS = 2


def is_long(*views: TensorView) -> bool:
    """Whether one of them is int64."""
    return any(view.dtype is DType.INT64 for view in views)


def low_words(view: TensorView) -> TensorView:
    """The low words of an int64 view, which count as unsigned."""
    assert view.dtype is DType.INT64
    strides = tuple(_WORDS * stride for stride in view.strides)
    return replace(view, dtype=DType.INT32, strides=strides)


def high_words(view: TensorView) -> TensorView:
    """The high words of an int64 view, which carry the sign."""
    return replace(low_words(view), offset_bytes=view.offset_bytes + _WORD_BYTES)


def words(view: TensorView) -> TensorView:
    """Both words of an int64 view as a new last dimension of two."""
    return low_words(view).inserted(-1, _WORDS, 1)


def split(value: int) -> tuple[int, int]:
    """(low, high) word of an int64 in two's complement, each from 0 to 2³² − 1."""
    return value & _WORD_MASK, value >> 32 & _WORD_MASK
