# SPDX-License-Identifier: Apache-2.0
"""Convolution, pooling and attention on the cmodel against torch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from lower_torch import TorchBench, layouts, numbers

FLOATS = (torch.float32, torch.float16, torch.bfloat16)
floats = pytest.mark.parametrize("dtype", FLOATS, ids=str)

CONVOLUTIONS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((3, 4, 9, 10), (6, 4, 3, 2), {}),
    ((3, 4, 9, 10), (6, 4, 3, 2), {"stride": [2, 3]}),
    ((3, 4, 9, 10), (6, 4, 3, 3), {"stride": [2, 1], "padding": [1, 2], "dilation": [1, 2]}),
    ((3, 4, 9, 10), (6, 2, 3, 3), {"groups": 2, "padding": [1, 1]}),
    ((3, 4, 9, 10), (4, 1, 3, 3), {"groups": 4}),
    ((3, 4, 9, 10), (6, 4, 1, 1), {}),
    ((3, 4, 9, 10), (6, 4, 1, 1), {"stride": [2, 2]}),
    ((2, 4, 9), (6, 4, 3), {"padding": [1]}),
    ((1, 2, 4, 5, 6), (3, 2, 2, 2, 2), {"padding": [1, 0, 1]}),
]


@floats
@pytest.mark.parametrize(("sizes", "kernel", "options"), CONVOLUTIONS)
def test_convolution(
    npu: TorchBench,
    dtype: torch.dtype,
    sizes: tuple[int, ...],
    kernel: tuple[int, ...],
    options: dict[str, Any],
) -> None:
    rank = len(sizes) - 2
    weight = numbers(*kernel, dtype=dtype).round()
    for x in layouts(numbers(*sizes, dtype=dtype).round()).values():
        for bias in (None, numbers(kernel[0], dtype=dtype).round()):
            windows = (options.get(name, [value] * rank) for name, value in WINDOW)
            args = (x, weight, bias, *windows, False, [0] * rank, options.get("groups", 1))
            answer = npu.call("convolution", *args)
            assert answer.exact() == answer.pair[0].numel() > 0


WINDOW = (("stride", 1), ("padding", 0), ("dilation", 1))

POOLS: list[tuple[tuple[list[int], list[int], list[int]], bool]] = [
    (([2, 2], [], [0]), False),
    (([3, 2], [2, 1], [1, 1]), False),
    (([3, 3], [2, 2], [1, 1]), True),
    (([3], [1], [0]), False),
    (([2, 3], [3, 4], [0, 0]), True),
]


@floats
@pytest.mark.parametrize(("windows", "ceil"), POOLS)
def test_pooling(
    npu: TorchBench,
    dtype: torch.dtype,
    windows: tuple[list[int], list[int], list[int]],
    ceil: bool,
) -> None:
    for x in (*layouts(numbers(2, 3, 8, 9, dtype=dtype)).values(), numbers(3, 8, 9, dtype=dtype)):
        where = (x, *windows)
        assert npu.call("max_pool2d_with_indices", *where, [1], ceil).exact() > 0
        for divide in ((True, None), (False, None), (False, 7)):
            assert npu.call("avg_pool2d", *where, ceil, *divide).close(4) > 0


@floats
def test_pooling_of_dilated_windows_and_special_values(npu: TorchBench, dtype: torch.dtype) -> None:
    x = numbers(2, 3, 8, 9, dtype=dtype)
    assert npu.call("max_pool2d_with_indices", x, [2, 2], [2, 1], [1, 1], [2, 3]).exact() > 0
    x = x.clone()
    x[0, 0, 2:4, 3] = float("nan")
    x[0, 1] = float("-inf")
    x[0, 2] = 1
    assert npu.call("max_pool2d_with_indices", x, [3, 3], [2, 2], [1, 1]).exact() > 0


@floats
@pytest.mark.parametrize("size", [[1, 1], [4, 3], [3, 5], [8, 9], [2, 9], [10, 12]])
def test_adaptive_pooling(npu: TorchBench, dtype: torch.dtype, size: list[int]) -> None:
    for x in layouts(numbers(2, 3, 8, 9, dtype=dtype)).values():
        assert npu.call("_adaptive_avg_pool2d", x, size).close(4) == 6 * size[0] * size[1]


def test_a_two_by_two_mean_is_two_passes(npu: TorchBench) -> None:
    answer = npu.call("avg_pool2d", numbers(2, 3, 8, 8), [2, 2])
    assert answer.close(4) == 96
    assert len(answer.program.packets) == 2


# ---------------------------------------------------------------------- attention
def heads(count: int, rows: int, dtype: torch.dtype, seed: int = 0) -> torch.Tensor:
    """[2, heads, rows, 8], as a projection leaves it: heads within rows."""
    return numbers(2, rows, count, 8, dtype=dtype, seed=seed).transpose(1, 2) / 3


MASKS = {
    "none": None,
    "float": numbers(5, 7),
    "bool": numbers(2, 1, 5, 7, dtype=torch.bool),
    "per head": numbers(2, 6, 5, 7, dtype=torch.bool),
}


@floats
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("groups", [1, 3])
def test_attention(npu: TorchBench, dtype: torch.dtype, mask: str, groups: int) -> None:
    q, k, v = heads(6, 5, dtype), heads(6 // groups, 7, dtype), heads(6 // groups, 7, dtype, 1)
    given = MASKS[mask]
    if given is not None and given.is_floating_point():
        given = given.to(dtype)
    kwargs: dict[str, Any] = {"enable_gqa": True} if groups > 1 else {}
    for scale in (None, 0.3, -0.3):
        args = {"attn_mask": given, "scale": scale, **kwargs}
        answer = npu.call("scaled_dot_product_attention", q, k, v, **args)
        assert answer.close(16) == 480
    if mask == "none":
        answer = npu.call("scaled_dot_product_attention", q, k, v, is_causal=True, **kwargs)
        assert answer.close(16) == 480


def test_a_row_that_sees_nothing_is_zero(npu: TorchBench) -> None:
    mask = numbers(5, 7, dtype=torch.bool)
    mask[2] = False
    q, k = heads(6, 5, torch.float32), heads(6, 7, torch.float32)
    assert npu.call("scaled_dot_product_attention", q, k, k, attn_mask=mask).close(16) == 480


@floats
def test_attention_with_its_second_result(npu: TorchBench, dtype: torch.dtype) -> None:
    q, k, v = heads(6, 5, dtype), heads(6, 7, dtype), heads(6, 7, dtype, 1)
    for is_causal in (False, True):
        flash = "_scaled_dot_product_flash_attention_for_cpu"
        assert npu.call(flash, q, k, v, 0.0, is_causal).close(16) == 480 + 60
        math = npu.call("_scaled_dot_product_attention_math", q, k, v, None, 0.0, is_causal)
        assert math.close(16) == 480 + 420


def test_attention_without_batch_or_heads(npu: TorchBench) -> None:
    q, k = heads(6, 5, torch.float32), heads(6, 7, torch.float32)
    assert npu.call("scaled_dot_product_attention", q[0], k[0], k[0]).close(16) == 240
    assert npu.call("scaled_dot_product_attention", q[0, 0], k[0, 0], k[0, 0]).close(16) == 40


@floats
def test_rotary_embedding(npu: TorchBench, dtype: torch.dtype) -> None:
    angles = numbers(1, 1, 5, 8, dtype=dtype)
    for x in layouts(heads(6, 5, dtype)).values():
        assert npu.call("npu.rotary", x, angles.cos(), angles.sin()).close(4) == 480
