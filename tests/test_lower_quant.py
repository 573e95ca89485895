# SPDX-License-Identifier: Apache-2.0
"""Quantisation and int4 products on the cmodel against torch.ops.npu, and short functions."""

from __future__ import annotations

import pytest
import torch
from lower_torch import TorchBench, layouts, numbers

from driver.capture.npu_ops import int4_weights

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
@pytest.mark.parametrize("group", [8, 16, 1 << 15])
@pytest.mark.parametrize("depth", [16, 21, 40])
def test_an_int4_product_is_one_packet(
    npu: TorchBench, dtype: torch.dtype, group: int, depth: int
) -> None:
    x, scales = numbers(5, depth, dtype=dtype).round(), numbers(-(-depth // group), 7, dtype=dtype)
    scales = scales.round()
    weight = torch.randint(-(2**31), 2**31, (-(-depth // 8), 7), dtype=torch.int32)
    for words, factors in zip(layouts(weight).values(), layouts(scales).values(), strict=True):
        answer = npu.call("npu.int4_mm", x, words, factors, group)
        assert answer.exact() == 35
        assert len(answer.program.packets) == 1


@floats
def test_int4_weights_round_as_the_custom_op_says(npu: TorchBench, dtype: torch.dtype) -> None:
    """Every weight of every class of scale, by a product that selects it."""
    scales = torch.tensor([0.0, -0.0, 1e-45, 6e-8, 3e-39, 1e-5, 0.1, -0.3, 7e3, 3e38, torch.inf])
    scales = torch.cat([scales, numbers(53)]).to(dtype)[None]
    low, high = 0x76543210, -0x01234568  # nibbles 0 to 7, and 8 to 15
    weight = torch.tensor([[low], [high]], dtype=torch.int32).repeat(1, 64)
    answer = npu.call("npu.int4_mm", torch.eye(16, dtype=dtype), weight, scales, 16)
    weights = int4_weights(weight, scales, 16)  # torch's own product flushes subnormals of bf16
    finite = torch.isfinite(weights).all(0)
    assert torch.equal(answer.pair[0][:, finite], weights[:, finite])
    assert finite.sum() > 50


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
