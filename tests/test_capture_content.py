# SPDX-License-Identifier: Apache-2.0
"""A tensor is recorded with the bytes that it has, whoever wrote them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from driver.capture import Capsule, TensorRef, as_tensor, capture


class Counter(torch.nn.Module):
    """Adds its state to x, changes the state, adds it again."""

    n: torch.Tensor

    def __init__(self, change: Callable[[torch.Tensor], object]) -> None:
        super().__init__()
        self.register_buffer("n", torch.zeros(3))
        self.change = change

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        before = x + self.n
        self.change(self.n)
        return before + self.n


def with_numpy(n: torch.Tensor) -> None:
    n.numpy()[:] = 1


WAYS: dict[str, Callable[[torch.Tensor], object]] = {
    "in place": lambda n: n.add_(1),
    "data": lambda n: n.data.add_(1),
    "numpy": with_numpy,
    "copy": lambda n: n.copy_(torch.ones(3)),
}


def operand(capsule: Capsule, op: str, occurrence: int, position: int) -> list[float]:
    """Values of one operand of one of the ops of that name."""
    ref = [found for found in capsule.ops if found.op == op][occurrence].inputs[position]
    assert isinstance(ref, TensorRef)
    values: list[float] = as_tensor(capsule, ref).tolist()
    return values


@pytest.mark.parametrize("way", WAYS)
def test_state_that_changed_is_recorded_as_it_is(way: str) -> None:
    capsule = capture(Counter(WAYS[way]), torch.zeros(3), name="counter")
    assert operand(capsule, "aten.add.Tensor", 0, 1) == [0, 0, 0]
    assert operand(capsule, "aten.add.Tensor", -1, 1) == [1, 1, 1]
    assert as_tensor(capsule, capsule.document.outputs[0]).tolist() == [1, 1, 1]


def test_an_op_in_place_on_a_buffer_records_what_it_wrote() -> None:
    capsule = capture(Counter(WAYS["in place"]), torch.zeros(3), name="counter")
    (op,) = (op for op in capsule.ops if op.op.startswith("aten.add_."))
    (written,) = op.outputs
    assert written is not None
    assert as_tensor(capsule, written).tolist() == [1, 1, 1]


def test_statistics_that_training_moved_are_recorded_as_they_are() -> None:
    class Twice(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = torch.nn.BatchNorm1d(2, momentum=0.5).train()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.norm(x)
            mean = self.norm.running_mean
            assert mean is not None
            return mean * 2

    capsule = capture(Twice(), torch.tensor([[1.0, 3.0], [3.0, 5.0]]), name="norm")
    assert operand(capsule, "aten.mul.Tensor", -1, 0) == [1, 2]


def test_memory_that_torch_gave_to_another_tensor_is_not_taken_for_the_former() -> None:
    class Reuse(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for step in range(8):
                x = x + torch.full((1000,), float(step))
            return x

    capsule = capture(Reuse(), torch.zeros(1000), name="reuse")
    found = [operand(capsule, "aten.add.Tensor", step, 1)[0] for step in range(8)]
    assert found == list(range(8))
