# SPDX-License-Identifier: Apache-2.0
"""torch.npu.allow_cpu_fallback: ops that the NPU refuses, on the CPU, counted and reported."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import nn

from driver.torch_device import fallback

Op = Callable[[torch.Tensor], torch.Tensor]


@pytest.fixture
def allowed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(fallback, "_ran", Counter())
    torch.npu.allow_cpu_fallback(True)
    yield
    torch.npu.allow_cpu_fallback(False)


OPS: dict[str, Op] = {
    "functional": lambda t: t * 2 + 1,
    "in place": lambda t: t.add_(1).mul_(t),
    "out": lambda t: torch.add(t, 2.5, out=torch.empty(0, dtype=t.dtype, device=t.device)),
    "two results": lambda t: torch.linalg.qr(t)[1].abs(),
    "a list": lambda t: torch.stack(torch._foreach_mul([t, t[0]], 3.0)[:1]),
    "a view": lambda t: t.t()[1:].exp(),
    "a number": lambda t: t.new_full((2,), float(t.sum().item())),
}


@pytest.mark.filterwarnings("ignore:npu:RuntimeWarning")
@pytest.mark.usefixtures("allowed")
@pytest.mark.parametrize("name", OPS)
def test_what_the_npu_refuses_is_the_cpus_answer(name: str) -> None:
    given = torch.randn(5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    expected, found = OPS[name](given.clone()), OPS[name](given.to("npu"))
    assert found.device == torch.device("npu", 0)
    torch.testing.assert_close(found.cpu(), expected)
    assert sum(torch.npu.cpu_fallbacks().values()) > 0


@pytest.mark.filterwarnings("ignore:npu:RuntimeWarning")
@pytest.mark.usefixtures("allowed")
def test_a_model_in_float64_trains() -> None:
    torch.manual_seed(2)
    here = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 1)).double()
    there = copy.deepcopy(here).to("npu")
    given = torch.randn(6, 4, dtype=torch.float64)
    for model, x in ((here, given), (there, given.to("npu"))):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model(x).square().mean().backward()
        optimizer.step()
    for a, b in zip(here.parameters(), there.parameters(), strict=True):
        torch.testing.assert_close(b.cpu(), a)


@pytest.mark.usefixtures("allowed")
def test_each_op_is_reported_once_and_counted() -> None:
    x = torch.ones(3, dtype=torch.float64).to("npu")
    with pytest.warns(RuntimeWarning, match=r"npu: aten\.exp.* runs on the CPU: .*float64") as seen:
        x.exp()
        x.exp()
    assert len(seen) == 1
    assert list(torch.npu.cpu_fallbacks().values()) == [2]


def test_without_leave_nothing_runs_on_the_cpu() -> None:
    before = torch.npu.cpu_fallbacks()
    with pytest.raises(NotImplementedError, match="float64"):
        torch.ones(3, dtype=torch.float64).to("npu").exp()
    assert torch.npu.cpu_fallbacks() == before
