# SPDX-License-Identifier: Apache-2.0
"""Fake quantization on device "npu" next to CPU torch: values, gradients, and its modules."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.ao.quantization import FakeQuantize, MovingAverageMinMaxObserver

Quantize = Callable[[torch.Tensor, str], torch.Tensor]
RANGE = (-10, 20)


def _channels(x: torch.Tensor, device: str) -> torch.Tensor:
    scale = torch.tensor([0.1, 0.2, 0.3, 0.05, 0.7], device=device)
    zero_point = torch.tensor([0, 1, -2, 3, 4], dtype=torch.int32, device=device)
    return torch.fake_quantize_per_channel_affine(x, scale, zero_point, 1, *RANGE)


def _measured(x: torch.Tensor, device: str) -> torch.Tensor:
    scale = torch.tensor([0.3], device=device)
    zero_point = torch.tensor([-2], dtype=torch.int32, device=device)
    return torch.fake_quantize_per_tensor_affine(x, scale, zero_point, *RANGE)


WAYS: dict[str, Quantize] = {
    "numbers": lambda x, _: torch.fake_quantize_per_tensor_affine(x, 0.1, 3, *RANGE),
    "tensors": _measured,
    "channels": _channels,
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("way", WAYS)
def test_values_and_gradients_are_those_of_the_cpu(way: str, dtype: torch.dtype) -> None:
    def quantized(device: str) -> tuple[torch.Tensor, torch.Tensor]:
        x = torch.linspace(-6, 6, 45).reshape(3, 5, 3).to(device, dtype).requires_grad_()
        made = WAYS[way](x, device)
        (made * made).sum().backward()
        assert x.grad is not None
        return made.detach().cpu(), x.grad.cpu()

    for found, expected in zip(quantized("npu"), quantized("cpu"), strict=True):
        assert torch.equal(found, expected)


def test_a_module_with_an_observer_learns_the_same_grid() -> None:
    def trained(device: str) -> list[float]:
        quantize = FakeQuantize(MovingAverageMinMaxObserver, quant_min=0, quant_max=255).to(device)
        for step in range(3):
            made = quantize(torch.linspace(-1 - step, 2, 40, device=device))
        quantize.disable_fake_quant()
        plain = quantize(torch.full((1,), 0.123, device=device))
        return [*made.tolist(), quantize.scale.item(), quantize.zero_point.item(), plain.item()]

    assert trained("npu") == trained("cpu")


def test_a_sparse_gradient_is_refused_by_name() -> None:
    rows = torch.nn.Embedding(4, 2, sparse=True).to("npu")(torch.tensor([1], device="npu"))
    with pytest.raises(NotImplementedError, match=r"npu: aten::_sparse.* on the CPU alone"):
        rows.sum().backward()
