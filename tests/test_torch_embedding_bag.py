# SPDX-License-Identifier: Apache-2.0
"""EmbeddingBag on the NPU: sums, means and largest elements of bags, and their gradients."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

INDICES = [1, 5, 5, 1, 0, 8, 3, 1, 1]
OFFSETS = [0, 2, 2, 7]  # the second bag is empty


def step(
    device: str, dtype: torch.dtype, *, mode: str, padding: int | None, last: bool, factors: bool
) -> list[Tensor]:
    """The bags of a table, and the gradients of its rows and of the factors."""
    torch.manual_seed(1)
    table, scale = torch.randn(9, 4, dtype=dtype), torch.randn(9, dtype=dtype)
    leaves = [x.to(device).detach().requires_grad_() for x in (table, scale)]
    found = functional.embedding_bag(
        torch.tensor(INDICES).to(device),
        leaves[0],
        torch.tensor([*OFFSETS, len(INDICES)] if last else OFFSETS).to(device),
        mode=mode,
        per_sample_weights=leaves[1] if factors else None,
        include_last_offset=last,
        padding_idx=padding,
    )
    found.float().square().sum().backward()
    grads = [x.grad for x in leaves if x.grad is not None]
    return [x.detach().cpu() for x in (found, *grads)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("padding", [None, 1])
@pytest.mark.parametrize("kind", ["sum", "sum with factors", "mean", "max"])
def test_bags_and_gradients_are_those_of_the_cpu(
    kind: str, padding: int | None, last: bool, dtype: torch.dtype, tmp_path: Path
) -> None:
    mode, _, factors = kind.partition(" with ")
    asked = {"mode": mode, "padding": padding, "last": last, "factors": bool(factors)}
    expected = step("cpu", dtype, **asked)  # type: ignore[arg-type]
    with torch.npu.check(tmp_path) as report:
        found = step("npu", dtype, **asked)  # type: ignore[arg-type]
    assert len(found) == 2 + bool(factors)
    near = 1e-5 if dtype is torch.float32 else 4e-2  # CPU torch rounds every sum of 16 bits
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=near, atol=near)
    assert report.whole["aten._embedding_bag.default"] == expected[0].numel()


def test_bags_without_an_index_are_zero() -> None:
    bag = nn.EmbeddingBag(5, 3, mode="max").to("npu")
    nothing, starts = torch.zeros(0, dtype=torch.long), torch.zeros(2, dtype=torch.long)
    assert not bag(nothing.to("npu"), starts.to("npu")).any()


@pytest.mark.parametrize("device", ["cpu", "npu"])
@pytest.mark.parametrize(
    ("offsets", "said"), [([1, 2], r"offsets\[0\] has to be 0"), ([0, 3], r"offsets\[-1\] can not")]
)
def test_offsets_that_the_cpu_refuses_are_refused(
    offsets: list[int], said: str, device: str
) -> None:
    indices, table = torch.tensor([1, 2]).to(device), torch.ones(3, 2).to(device)
    with pytest.raises(RuntimeError, match=said):
        functional.embedding_bag(indices, table, torch.tensor(offsets).to(device))


@pytest.mark.parametrize("asked", [{"sparse": True}, {"scale_grad_by_freq": True}])
def test_gradients_that_are_not_computed_are_refused(asked: dict[str, bool]) -> None:
    bag = nn.EmbeddingBag(5, 3, mode="sum", **asked).to("npu")  # type: ignore[arg-type]
    found = bag(torch.tensor([[1, 2]]).to("npu"))
    with pytest.raises(NotImplementedError, match="_embedding_bag_backward"):
        found.sum().backward()
