# SPDX-License-Identifier: Apache-2.0
"""torch.npu.allow_cpu_fallback: ops that the NPU refuses, on the CPU, counted and reported."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import nn

from driver.errors import InputError
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


# ---------------------------------------------------------------------- named ops
@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    monkeypatch.setattr(fallback, "_ran", Counter())
    monkeypatch.setattr(fallback, "_registered", {})
    return torch.npu.register_cpu_fallback


@pytest.mark.parametrize("name", ["aten::exp", "aten::add"])
def test_a_registered_op_runs_on_the_cpu_in_all_its_forms(
    registered: Callable[[str], None], capsys: pytest.CaptureFixture[str], name: str
) -> None:
    op = getattr(torch, name.removeprefix("aten::"))
    x = torch.rand(3)
    given = (x,) if name == "aten::exp" else (x, 2.0)
    there = tuple(torch.clone(x).to("npu") if isinstance(x, torch.Tensor) else x for x in given)
    expected = op(*given)
    registered(name)
    assert torch.npu.list_cpu_fallbacks() == (name,)
    warned = pytest.warns(RuntimeWarning, match=f"runs on the CPU: {name} is registered")
    with warned, torch.npu.debug.debug_mode(1):
        found = [op(*there), op(*there, out=torch.empty(3, device="npu"))]
        found.append(getattr(there[0], f"{op.__name__}_")(*there[1:]))
    assert all(torch.equal(x.cpu(), expected) for x in found)
    assert capsys.readouterr().err.count(f"[CPU] {op.__name__} [3]") == 3
    assert sum(torch.npu.cpu_fallbacks().values()) == 3
    torch.npu.unregister_cpu_fallback(name)
    there[0].exp()
    assert sum(torch.npu.cpu_fallbacks().values()) == 3


def test_other_ops_stay_on_the_npu_and_are_refused_as_before(
    registered: Callable[[str], None],
) -> None:
    registered("aten::exp")
    wide = torch.ones(3, dtype=torch.float64).to("npu")
    with pytest.raises(NotImplementedError, match=r"aten\.sin"):
        wide.sin()
    torch.ones(3, device="npu").sin()
    assert torch.npu.cpu_fallbacks() == {}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("aten::no_such_op", "an op of torch"),
        ("exp", "an op of torch"),
        ("aten::exp.out", "an op of torch"),
        ("aten::linear", "an op that reaches the device"),
    ],
)
def test_a_name_that_cannot_be_registered_is_refused(
    registered: Callable[[str], None], name: str, expected: str
) -> None:
    with pytest.raises(InputError, match=expected):
        registered(name)
    with pytest.raises(InputError, match="expected one of none"):
        torch.npu.unregister_cpu_fallback(name)
    assert torch.npu.list_cpu_fallbacks() == ()


# ---------------------------------------------------------------------- what an error says
class Wide(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.act = nn.Sequential(nn.Identity(), nn.Tanh())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.act(x)


def test_an_error_names_op_type_module_and_line() -> None:
    x = torch.ones(3, dtype=torch.float64).to("npu")
    with pytest.raises(NotImplementedError) as caught:
        Wide()(x)
    text = str(caught.value)
    assert text.startswith("npu: aten.tanh")
    assert "float64" in text
    assert "in Wide.act.1 (Tanh)" in text
    assert "test_torch_fallback.py:" in text
    assert "\n" not in text


def test_an_error_in_backward_names_the_autograd_node() -> None:
    class Widened(torch.autograd.Function):
        @staticmethod
        def forward(ctx: object, x: torch.Tensor) -> torch.Tensor:
            return x.clone()

        @staticmethod
        def backward(ctx: object, grad: torch.Tensor) -> torch.Tensor:
            return grad.double().tanh().float()

    x = torch.ones(3, device="npu", requires_grad=True)
    with pytest.raises(NotImplementedError, match=r"in WidenedBackward"):
        Widened.apply(x).sum().backward()
