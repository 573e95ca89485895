# SPDX-License-Identifier: Apache-2.0
"""Bits to values and values to the nearest of a format, against torch and numpy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from driver.isa import DType
from golden.formats import decode, round_to

SIXTEEN_BITS = {DType.FP16: torch.float16, DType.BF16: torch.bfloat16}


@pytest.mark.parametrize("dtype", SIXTEEN_BITS)
def test_decode_and_rounding_agree_with_torch_on_every_pattern(dtype: DType) -> None:
    bits = np.arange(2**16, dtype=np.uint16)
    values = decode(bits, dtype)
    expected = torch.from_numpy(bits.view(np.int16)).view(SIXTEEN_BITS[dtype]).double().numpy()
    assert np.array_equal(values, expected, equal_nan=True) and values.size == 2**16
    assert np.array_equal(round_to(values, dtype), values, equal_nan=True)
    assert np.array_equal(decode(bits.tobytes(), dtype), values, equal_nan=True)


@given(st.floats(allow_nan=False))
@settings(max_examples=500)
def test_rounding_agrees_with_numpy_where_numpy_rounds_once(value: float) -> None:
    with np.errstate(over="ignore"):
        for dtype, kind in ((DType.FP32, np.float32), (DType.FP16, np.float16)):
            assert round_to(np.array([value]), dtype)[0] == float(kind(value))


def test_rounding_to_bf16_is_not_double() -> None:
    just_above_half = np.array([1 + 2.0**-8 + 2.0**-40])
    assert round_to(just_above_half, DType.BF16)[0] == 1 + 2.0**-7
    assert round_to(np.array([1 + 2.0**-8]), DType.BF16)[0] == 1.0
    assert round_to(np.array([2.0**-134, 1.5 * 2.0**-133]), DType.BF16).tolist() == [0, 2.0**-132]


def test_decode_refuses_elements_of_another_size() -> None:
    with pytest.raises(ValueError, match="FP16"):
        decode(np.zeros(3, np.uint32), DType.FP16)
    assert decode(b"\xff\xff\xff\xff", DType.INT32).tolist() == [-1]
    assert decode(b"\x80\x7f", DType.INT8).tolist() == [-128, 127]
