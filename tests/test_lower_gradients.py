# SPDX-License-Identifier: Apache-2.0
"""Backward ops on the cmodel against torch, where the op samples are too small to show a rule."""

from __future__ import annotations

import pytest
import torch
from judged_call import passes, run

from driver.isa import Opcode, flag_field
from driver.lower import conv
from tb.ops.pair import DevicePair


@pytest.mark.parametrize("transposed", [False, True])
def test_gradients_of_a_convolutions_weights_are_one_product(
    pair: DevicePair, transposed: bool
) -> None:
    torch.manual_seed(3)
    x, weight = torch.randn(3, 4, 7, 6), torch.randn(4, 4, 3, 3)
    grad = torch.randn(3, 4, *((9, 8) if transposed else (5, 4)))
    tail = ([1, 1], [0, 0], [1, 1], transposed, [0, 0], 1, [False, True, False])
    call = ("aten.convolution_backward.default", grad, x, weight, [4], *tail)
    result, _ = run(pair, *call)
    assert [packet.opcode for packet in result.packets] == [Opcode.MATMUL]
    assert passes(pair, *call) == weight.numel()


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_gradients_of_a_volumes_weights_are_summed_image_by_image(
    pair: DevicePair, dtype: torch.dtype, groups: int
) -> None:
    torch.manual_seed(3)
    x, weight = torch.randn(3, 4, 4, 3, 5), torch.randn(4, 4 // groups, 2, 2, 2)
    grad = torch.randn(3, 4, 3, 2, 4)
    tail = ([1] * 3, [0] * 3, [1] * 3, False, [0] * 3, groups, [False, True, False])
    tensors = (tensor.to(dtype) for tensor in (grad, x, weight))
    call = ("aten.convolution_backward.default", *tensors, [4], *tail)
    result, _ = run(pair, *call)
    products = [packet for packet in result.packets if packet.opcode == Opcode.MATMUL]
    assert len(products) == 3 * groups
    assert sum(bool(flag_field(packet.flags, "ACCUMULATE")) for packet in products) == 2 * groups
    assert passes(pair, *call) == weight.numel()


@pytest.mark.parametrize("padding", [0, 1])
def test_a_convolution_is_one_product_and_only_its_border_is_copied(
    pair: DevicePair, padding: int
) -> None:
    torch.manual_seed(4)
    x, weight, bias = torch.randn(3, 4, 7, 6), torch.randn(6, 2, 3, 3), torch.randn(6)
    pads = [padding, padding]
    call = ("aten.convolution.default", x, weight, bias, [2, 1], pads, [1, 1], False, [0, 0], 2)
    result, _ = run(pair, *call)
    border = [Opcode.FILL, Opcode.FILL, Opcode.COPY] if padding else []
    assert [packet.opcode for packet in result.packets] == [*border, Opcode.MATMUL]
    assert passes(pair, *call) > 0


def test_a_volumes_windows_are_laid_out_along_one_dimension_part_by_part(
    pair: DevicePair, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(5)
    x, weight, bias = torch.randn(3, 4, 5, 4, 6), torch.randn(6, 2, 2, 3, 3), torch.randn(6)
    steps = ([1, 1, 2], [1, 0, 1], [1, 1, 1], False, [0] * 3, 2)
    call = ("aten.convolution.default", x, weight, bias, *steps)
    whole, _ = run(pair, *call)
    monkeypatch.setattr(conv, "_LAID_OUT_BYTES", 1 << 10)
    parts, _ = run(pair, *call)
    assert len(parts.packets) > len(whole.packets)
    assert all((a == b).all() for a, b in zip(parts.cmodel.bits, whole.cmodel.bits, strict=True))
    assert passes(pair, *call) > 0


def test_queries_that_share_a_key_head_are_rows_of_one_product(pair: DevicePair) -> None:
    torch.manual_seed(6)
    query, key, value = torch.randn(2, 6, 5, 8), torch.randn(2, 2, 7, 8), torch.randn(2, 2, 7, 8)
    name = "aten.scaled_dot_product_attention.default"
    call = (name, query, key, value, None, 0.0, False)
    result, _ = run(pair, *call, enable_gqa=True)
    products = [packet for packet in result.packets if packet.opcode == Opcode.MATMUL]
    assert [packet.params[:4] for packet in products] == [(15, 8, 7, 4), (15, 7, 8, 4)]
