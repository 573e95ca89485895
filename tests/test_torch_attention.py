# SPDX-License-Identifier: Apache-2.0
"""Attention on device "npu": one op with a gradient of its own, judged and beside CPU torch."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention as attention

Tensor = torch.Tensor
HIDDEN = torch.ones(5, 7, dtype=torch.bool).tril(2)
HIDDEN[2] = False  # a row with nothing to attend to

CALLS: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "plain": attention,
    "causal": lambda q, k, v: attention(q, k, v, is_causal=True),
    "scaled": lambda q, k, v: attention(q, k, v, scale=-0.3),
    "truth values": lambda q, k, v: attention(q, k, v, attn_mask=HIDDEN.to(q.device)),
    "keys hidden": lambda q, k, v: attention(
        q, k, v, attn_mask=HIDDEN[None, None, -1:].expand(2, 1, 1, 7).to(q.device)
    ),
    "numbers": lambda q, k, v: attention(
        q, k, v, attn_mask=torch.linspace(-1, 1, 35).view(5, 7).to(q.device)
    ),
    "shared keys": lambda q, k, v: attention(q, k[:, ::2], v[:, ::2], enable_gqa=True),
    "strides": lambda q, k, v: attention(q.mT.contiguous().mT, k, v[:1].expand(2, 4, 7, 8)),
    "no batch": lambda q, k, v: attention(q[0], k[0], v[0], is_causal=True),
}


def run(call: Callable[[Tensor, Tensor, Tensor], Tensor], given: list[Tensor]) -> list[Tensor]:
    """The result and the gradients."""
    made = call(*given)
    (made * made.detach().cos()).sum().backward()
    gradients = [x.grad for x in given]
    return [x.detach().cpu() for x in (made, *gradients) if x is not None]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", CALLS)
def test_attention_and_its_gradients_are_the_cpus(name: str, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(2)
    shapes = ((2, 4, 5, 8), (2, 4, 7, 8), (2, 4, 7, 8))
    given = [torch.randn(shape, generator=generator).to(dtype) for shape in shapes]
    here, there = (
        [x.to(device, copy=True).requires_grad_() for x in given] for device in ("cpu", "npu")
    )
    expected = run(CALLS[name], here)
    with torch.npu.check() as report:
        found = run(CALLS[name], there)
    assert report.not_judged == {}
    assert report.elements > 500
    near = 1e-5 if dtype == torch.float32 else 4e-2
    assert len(found) == len(expected) == 4
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=near, atol=near)


@pytest.mark.parametrize("case", ["dropout", "mask wants a gradient", "other values"])
def test_what_the_row_does_not_take_runs_by_products(case: str) -> None:
    q, k = torch.randn(1, 2, 4, 8, device="npu"), torch.randn(1, 2, 4, 8, device="npu")
    v = k[..., :6] if case == "other values" else k
    mask = torch.zeros(4, 4, device="npu", requires_grad=case == "mask wants a gradient")
    made = attention(q, k, v.requires_grad_(), mask, 0.5 if case == "dropout" else 0.0)
    made.sum().backward()
    assert v.grad is not None
    assert v.grad.cpu().count_nonzero() > 0
    if mask.requires_grad:
        assert mask.grad is not None
        assert mask.grad.cpu().count_nonzero() > 0


@pytest.mark.parametrize("size", [1.0, 100.0, 1e4, 1e8])
def test_the_weight_of_an_only_key_is_1_in_the_gradient_however_large_its_score(
    size: float,
) -> None:
    """12 columns: a scale of many bits, so that a score rounded once more or less is another."""
    generator = torch.Generator().manual_seed(3)
    q, k, v, grad = (torch.randn(2, 9, 1, 12, generator=generator) for _ in range(4))
    value = v.to("npu").requires_grad_()
    with torch.npu.check():
        attention((size * q).to("npu"), k.to("npu"), value).backward(grad.to("npu"))
    assert value.grad is not None
    assert torch.equal(value.grad.cpu(), grad)


@pytest.mark.parametrize("masked", [False, True])
def test_attention_of_a_batch_that_is_mapped(masked: bool) -> None:
    def mapped(device: str) -> torch.Tensor:
        x = torch.linspace(-1, 1, 240).reshape(3, 2, 2, 5, 4).to(device)
        mask = torch.linspace(-2, 2, 75).reshape(3, 5, 5).to(device)

        def loss(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            given = mask if masked else None
            return attention(x, x, x, given).square().sum()

        found: torch.Tensor = torch.vmap(torch.func.grad(loss))(x, mask)
        return found.cpu()

    torch.testing.assert_close(mapped("npu"), mapped("cpu"))
