# SPDX-License-Identifier: Apache-2.0
"""Quantisation and int4 products on the cmodel against torch.ops.npu, and short functions."""

from __future__ import annotations

import pytest
import torch
from lower_torch import TorchBench, layouts, numbers

FLOATS = (torch.float32, torch.float16, torch.bfloat16)
floats = pytest.mark.parametrize("dtype", FLOATS, ids=str)


@floats
def test_int8_there_and_back(npu: TorchBench, dtype: torch.dtype) -> None:
    scale, zero = torch.tensor(0.05), torch.tensor(3, dtype=torch.int32)
    for x in layouts(numbers(4, 6, dtype=dtype)).values():
        assert npu.call("npu.quantize", x, scale, zero).exact() == 24
    codes = torch.arange(-128, 128, dtype=torch.int8)
    assert npu.call("npu.dequantize", codes, scale.to(dtype), zero).exact() == 256


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_scales_per_channel(npu: TorchBench, axis: int) -> None:
    x = numbers(4, 5, 6)
    count = x.shape[axis]
    scales, zeros = numbers(count).abs() / 40 + 0.01, torch.arange(count, dtype=torch.int32) - 2
    codes = npu.call("npu.quantize", x, scales, zeros, axis)
    assert codes.exact() == 120
    assert npu.call("npu.dequantize", codes.pair[1], scales, zeros, axis).exact() == 120
    sums = torch.randint(-100000, 100000, (4, 5, 6), dtype=torch.int32)
    assert npu.call("npu.requantize", sums, scales / 50, zeros, axis).exact() == 120


def test_quantising_saturates(npu: TorchBench) -> None:
    x = torch.tensor([1e30, -1e30, float("inf"), -float("inf"), 0.5, 1.5, -0.5])
    one, zero = torch.tensor(1.0), torch.tensor(100, dtype=torch.int32)
    assert npu.call("npu.quantize", x, one, zero).exact() == 7


@floats
@pytest.mark.parametrize("group", [2, 8, 16])
def test_int4_products_unpack_in_two_passes(
    npu: TorchBench, dtype: torch.dtype, group: int
) -> None:
    x, scales = numbers(5, 16, dtype=dtype).round(), numbers(16 // group, 7, dtype=dtype).round()
    weight = torch.randint(0, 256, (8, 7), dtype=torch.uint8)
    answer = npu.call("npu.int4_mm", x, weight, scales, group)
    assert answer.exact() == 35
    assert len(answer.program.packets) == 3


@pytest.mark.parametrize(
    ("op", "kwargs"),
    [("silu", {}), ("gelu", {}), ("gelu", {"approximate": "tanh"}), ("_softmax", {})],
)
def test_sixteen_bit_results_take_shorter_programs(
    npu: TorchBench, op: str, kwargs: dict[str, str]
) -> None:
    used = []
    for dtype in (torch.float32, torch.float16):
        args = (-1, False) if op == "_softmax" else ()
        answer = npu.call(op, numbers(3, 40, dtype=dtype).abs(), *args, **kwargs)
        assert answer.close(3) == 120
        used.append({packet.params[0] for packet in answer.program.packets})
    assert used[0] != used[1]


@floats
@pytest.mark.parametrize("exponent", [0.5, -0.5, 3, 2.5, -2, 0.3])
def test_powers(npu: TorchBench, dtype: torch.dtype, exponent: float) -> None:
    x = numbers(4, 6, dtype=dtype).abs() + 0.25
    assert npu.call("pow.Tensor_Scalar", x, exponent).close(3) == 24
    assert npu.call("pow.Scalar", 1.5, x).close(3) == 24
    assert npu.call("pow.Tensor_Tensor", x, x[0] * exponent).close(3) == 24


@floats
@pytest.mark.parametrize("op", ["exp2", "expm1", "log2", "log10", "log1p", "softplus"])
def test_further_functions(npu: TorchBench, dtype: torch.dtype, op: str) -> None:
    x = numbers(4, 6, dtype=dtype).abs() + 0.25
    assert npu.call(op, x).close(3) == 24


@floats
def test_softplus_with_a_slope_and_a_threshold(npu: TorchBench, dtype: torch.dtype) -> None:
    assert npu.call("softplus", numbers(4, 6, dtype=dtype), 2.0, 5.0).close(3) == 24
