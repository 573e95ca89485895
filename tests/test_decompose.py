# SPDX-License-Identifier: Apache-2.0
"""Ops without a row are recorded as what torch makes of them; all others are recorded whole."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from driver.capture import capture
from driver.capture.decompose import definition, is_view
from driver.errors import UnsupportedOp
from driver.lower import LOWERINGS

aten = torch.ops.aten


class Call(torch.nn.Module):
    def __init__(self, call: Callable[[torch.Tensor], object]) -> None:
        super().__init__()
        self._call = call

    def forward(self, x: torch.Tensor) -> object:
        return self._call(x)


def recorded(call: Callable[[torch.Tensor], object]) -> list[str]:
    x = torch.linspace(-2, 2, 12).reshape(3, 4)
    return [op.op for op in capture(Call(call), x, name="call").ops if not op.view]


def test_an_op_with_a_row_is_whole() -> None:
    assert definition(aten.add.Tensor) is None
    assert recorded(lambda x: x + x) == ["aten.add.Tensor"]


@pytest.mark.parametrize(
    "call",
    [
        torch.nn.functional.mish,
        lambda x: torch.logaddexp(x, x + 1),
        torch.diag_embed,
        torch.nn.functional.hardsigmoid,
    ],
)
def test_an_op_without_a_row_is_what_torch_defines(call: Callable[[torch.Tensor], object]) -> None:
    names = recorded(call)
    assert len(names) > 1
    assert set(names) - set(LOWERINGS) - {"aten.empty.memory_format"} == set()


def test_an_op_in_place_is_the_op_and_a_copy() -> None:
    whole = aten.aminmax.out  # has no row, and writes to two tensors
    assert definition(whole) is None
    assert definition(aten.mish_.default) is not None
    x = torch.linspace(-2, 2, 5)
    capsule = capture(Call(lambda t: t.clone().xlogy_(t.abs())), x, name="place")
    names = [op.op for op in capsule.ops]
    assert names[-1] == "aten.copy_.default" and "aten.xlogy_.Tensor" not in names


def test_an_op_in_place_on_a_list_is_whole() -> None:
    assert definition(aten._foreach_mul_.Scalar) is None
    assert recorded(lambda x: torch._foreach_mul_([x.clone()], 2.0))[-1].startswith("aten._foreach")


def test_an_op_into_out_is_the_op_and_a_copy() -> None:
    def call(x: torch.Tensor) -> torch.Tensor:
        room = x * 0.0
        torch.mm(x, x.t(), out=room[:, :3])
        return room

    names = recorded(call)
    assert names == ["aten.mul.Tensor", "aten.mm.default", "aten.copy_.default"]


def test_an_out_that_torch_would_resize_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedOp, match=r"aten\.mm\.out: out: .*sizes \(3, 3\)"):
        recorded(lambda x: torch.mm(x, x.t(), out=torch.empty(0)))


def test_views_and_random_numbers_are_whole() -> None:
    for op in (aten.view.default, aten.squeeze_.dim, aten._unsafe_view.default):
        assert definition(op) is None and is_view(op)
    assert definition(aten.bernoulli.default) is None


def test_an_op_in_place_that_only_looks_otherwise_is_a_view() -> None:
    def call(x: torch.Tensor) -> torch.Tensor:
        return x.clone().unsqueeze_(0).transpose_(0, 1)

    assert recorded(call) == ["aten.clone.default"]


def test_a_definition_that_does_not_serve_leaves_the_op_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuses(*args: object, **kwargs: object) -> object:
        torch.ones(2) + 1
        raise RuntimeError("not for these arguments")

    monkeypatch.setattr("driver.capture.recorder.definition", lambda func: refuses
                        if func is aten.logaddexp.default else definition(func))  # fmt: skip
    assert recorded(lambda x: torch.logaddexp(x, x)) == ["aten.logaddexp.default"]


def test_results_are_torchs() -> None:
    x = torch.linspace(-2, 2, 15).reshape(3, 5)
    call = Call(lambda t: torch.nn.functional.elu(torch.logaddexp(t, t * 2)))
    found = capture(call, x, name="call")
    out = found.document.outputs[0]
    raw = found.data[out.storage].view("float32").reshape(out.sizes)
    assert torch.allclose(torch.from_numpy(raw.copy()), call(x), atol=1e-6)


@pytest.mark.parametrize(
    ("amsgrad", "expected"), [(False, "npu.adam_.default"), (True, "npu.amsgrad_.default")]
)
def test_a_step_on_lists_is_recorded_as_steps_on_one_parameter(
    amsgrad: bool, expected: str
) -> None:
    def step(x: torch.Tensor) -> torch.Tensor:
        lists = [[x.clone(), x[0].abs()] for _ in range(5)]
        steps = [torch.ones(()), torch.ones(())]
        numbers = {"lr": 0.1, "beta1": 0.9, "beta2": 0.9, "weight_decay": 0.0, "eps": 1e-3}
        largest = lists[4] if amsgrad else []
        lists[3] = [y.abs() for y in lists[3]]
        args = (*lists[:4], largest, steps)
        torch._fused_adamw_(*args, **numbers, amsgrad=amsgrad, maximize=False)
        return lists[0][0]

    names = recorded(step)
    assert names.count(expected) == 2
    assert not [name for name in names if "fused" in name]
