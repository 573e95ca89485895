# SPDX-License-Identifier: Apache-2.0
"""16-bit types on device "npu" next to CPU torch, where a value on the way does not fit them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional

HALF, BF = torch.float16, torch.bfloat16
Program = Callable[[str], Tensor]


def _filled(value: float, count: int, device: str, dtype: torch.dtype = HALF) -> Tensor:
    return torch.full((count,), value, device=device, dtype=dtype)


def _gradient(
    function: Callable[[Tensor], Tensor], x: Tensor, grad: Tensor | None = None
) -> Tensor:
    x = x.requires_grad_()
    made = function(x)
    made.backward(torch.ones_like(made) if grad is None else grad)
    assert x.grad is not None
    return x.grad


def _selected(device: str) -> Tensor:
    index = torch.zeros(3000, dtype=torch.int64, device=device)
    x = torch.zeros(2, 3, device=device, dtype=BF)
    return _gradient(lambda x: x.index_select(0, index), x)


def _added(device: str) -> Tensor:
    rows = torch.tensor([[4e4], [4e4], [-4e4]], device=device, dtype=HALF)
    index = torch.zeros(3, dtype=torch.int64, device=device)
    return torch.zeros(2, 1, device=device, dtype=HALF).index_add(0, index, rows)


def _multiplied(device: str) -> Tensor:
    self = torch.tensor([1e-4, 0.0], device=device, dtype=HALF)
    index = torch.tensor([0] * 6 + [1] * 40, device=device)
    return self.scatter_reduce(0, index, _filled(10.0, 46, device), "prod")


def _normed(value: float) -> Program:
    def program(device: str) -> Tensor:
        v = _filled(value, 24, device).reshape(1, 24)
        made, _ = torch._weight_norm_interface(v, _filled(1.0, 1, device).reshape(1, 1))
        return made

    return program


def _outer(device: str) -> Tensor:
    x = _filled(2e4, 1, device)
    return torch.addr(_filled(0.0, 1, device).reshape(1, 1), x, x, alpha=1e-4)


PROGRAMS: dict[str, Program] = {
    "the gradient of a row that is read often": _selected,
    "a sum by index": _added,
    "a product by index": _multiplied,
    "a norm of small weights": _normed(1e-6),
    "a norm of large weights": _normed(2e4),
    "products of pairs": _outer,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_fits_is_what_it_is_on_the_cpu(name: str) -> None:
    assert torch.equal(PROGRAMS[name]("npu").cpu(), PROGRAMS[name]("cpu"))


@pytest.mark.parametrize("function", [functional.silu, functional.mish])
@pytest.mark.parametrize("dtype", [HALF, BF])
def test_gradients_with_a_scale_are_rounded_once(
    function: Callable[[Tensor], Tensor], dtype: torch.dtype
) -> None:
    """As a GradScaler has them: large gradients at the flat end."""

    def gradient(device: str, dtype: torch.dtype) -> Tensor:
        x = torch.linspace(-17.4, 4.0, 400, dtype=HALF).to(device, dtype)
        return _gradient(function, x, torch.full_like(x, 3e4)).cpu().double()

    x = torch.linspace(-17.4, 4.0, 400, dtype=HALF).to(dtype).double()
    true = _gradient(function, x, torch.full_like(x, 3e4).to(dtype).double())
    finite = torch.finfo(dtype)
    spacing = finite.eps * true.abs() + finite.smallest_normal * finite.eps
    off = (gradient("npu", dtype) - true).abs() / spacing
    assert off[true.abs() < finite.max].max() <= 1.0
