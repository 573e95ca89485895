# SPDX-License-Identifier: Apache-2.0
"""The training of TEST=lenet_train: recorded with its backward and optimizer ops, run on its own
results; one wrong bit in a backward op is found, and blamed on the side that computed it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

from driver.capture import Capsule, capture
from driver.isa import ErrorCode, Opcode
from driver.isa.programs import LINES
from driver.results import OpRow
from golden.backend import CmodelBackend
from tb.ops.chain import ModelOutput
from tb.ops.session import Session
from tb.tests.lenet_train import ACCURACY, APART, LOSS_BUDGET, conclude
from tests.test_ops_chained import CONFIG, run_all, spec
from workloads.lenet_train import Epoch, build, divided

BACKWARD = "tanh_backward"
SLOPE = "sub_mul"
"""The vector program of its first packet; the second one writes the result."""


class Tiny(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(1, 2, 3, stride=2)
        self.fc = torch.nn.Linear(2 * 3 * 3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.fc(torch.tanh(self.conv(x)).flatten(1))
        return scores


@cache
def tiny(name: str = "lenet_train") -> Capsule:
    """Two steps of Adam on 4 images each."""
    torch.manual_seed(2)
    epoch = Epoch(Tiny(), 4, lambda found: torch.optim.Adam(found, 0.01), anneal=True)
    images, classes = torch.randn(8, 1, 8, 8), torch.randint(0, 3, (8,))
    return capture(epoch, (images, classes, images[:2]), name=name, seed=1)


def test_the_record_has_forward_backward_and_optimizer() -> None:
    ops = [op.op for op in tiny().ops]
    for name in ("convolution", "convolution_backward", BACKWARD, "_log_softmax_backward_data"):
        assert ops.count(f"aten.{name}.default") == 2 + (name == "convolution"), name
    assert any("addcdiv" in op or "adam" in op for op in ops)
    backward = {op.source for op in tiny().ops if op.op == f"aten.{BACKWARD}.default"}
    assert all("lenet_train.py:" in source for source in backward)


def test_equal_seeds_record_the_same_training() -> None:
    first, second = (capture(*build(3, None, steps=1), name="x", seed=3).hash for _ in range(2))
    assert first == second


class OneBit(CmodelBackend):
    """Stands in for an RTL: one bit of the first backward op's first element is another."""

    cycle = 0

    def __init__(self) -> None:
        super().__init__(CONFIG)
        self._next = self._done = False

    def _execute(self, packet: bytes, seq: int) -> ErrorCode:
        code = super()._execute(packet, seq)
        opcode, program = (int.from_bytes(packet[at : at + 4], "little") for at in (0, 32))
        vector = opcode == Opcode.VECTOR
        if self._next and not self._done and vector and program == LINES["mul"]:
            self.memory[int.from_bytes(packet[24:32], "little")] ^= 1
            self._done = True
        self._next = vector and program == LINES[SLOPE]
        return code

    def last_writer(self, address: int) -> int | None:
        return 7


def test_a_training_runs_on_its_own_weights(tmp_path: Path) -> None:
    rows = run_all(Session(spec(tmp_path), CONFIG), tiny())
    assert {row.status for row in rows} == {"pass"}
    assert all(row.where == "cmodel" for row in rows)
    assert sum(row.elements_compared for row in rows) > 2000
    budgets = [row.drift.budget for row in rows if row.drift is not None]
    assert budgets
    assert all(isinstance(budget, float) and np.isfinite(budget) for budget in budgets)


def test_one_wrong_bit_in_a_backward_op_is_found_and_blamed_on_the_rtl(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Session, "_open_rtl", lambda *_: OneBit())
    plain = CONFIG.model_copy(update={"fusion": False})  # the wrong one is a pass of its own
    rows = run_all(Session(spec(tmp_path, "rtl"), plain), tiny())
    failed = [row for row in rows if row.status == "fail"]
    assert [(row.op, row.blame) for row in failed] == [(f"aten.{BACKWARD}.default", "rtl")]
    assert failed[0].failure is not None
    assert failed[0].rtl_vs_cmodel_mismatches == 1
    assert failed[0].failure.element == (0, 0, 0, 0)
    assert all(isinstance(row, OpRow) for row in rows)


# ---------------------------------------------------------------------- the model's verdict
def finals(**changes: np.ndarray) -> list[ModelOutput]:
    """Losses that fall, the right classes, a parameter: as torch has them, but for the changes."""
    losses = np.linspace(3.0, 0.1, 20, dtype=np.float32)
    scores = np.eye(10, dtype=np.float32)[divided()[3].numpy()]
    values = {"losses": losses, "scores": scores, "weight": np.ones(3, np.float32)}
    return [ModelOutput(changes.get(name, value), value) for name, value in values.items()]


def test_a_training_that_follows_torch_and_classifies_is_right() -> None:
    found = conclude(tiny(), finals())
    assert found.ok
    assert "accuracy 359/359" in found.text
    assert [curve.npu for curve in found.curves] == [curve.torch for curve in found.curves]


def test_a_loss_away_from_torchs_is_wrong() -> None:
    losses = np.linspace(3.0, 0.1, 20, dtype=np.float32)
    losses[7] += 2 * LOSS_BUDGET
    assert not conclude(tiny(), finals(losses=losses)).ok
    losses[7] = np.nan
    assert not conclude(tiny(), finals(losses=losses)).ok


def test_a_loss_that_does_not_fall_is_wrong() -> None:
    flat = [replace(x, npu=np.ones(20), torch=np.ones(20)) for x in finals()[:1]]
    assert not conclude(tiny(), [*flat, *finals()[1:]]).ok


def test_other_right_classes_than_torch_has_are_wrong() -> None:
    scores = np.eye(10, dtype=np.float32)[divided()[3].numpy()]
    scores[:APART] = np.roll(scores[:APART], 1, axis=1)
    assert conclude(tiny(), finals(scores=scores)).ok
    scores[APART] = np.roll(scores[APART], 1)
    found = conclude(tiny(), finals(scores=scores))
    assert not found.ok
    assert "accuracy 355/359 = 98.9%, torch's 359; right digits differ" in found.text


def test_a_training_in_which_torch_classifies_too_few_is_wrong() -> None:
    made = finals()
    scores = made[1].torch.copy()
    wrong = round(len(scores) * (1 - ACCURACY)) + 1
    scores[:wrong] = np.roll(scores[:wrong], 1, axis=1)
    made[1] = ModelOutput(scores, scores)
    assert not conclude(tiny(), made).ok


def test_a_few_steps_of_small_batches_need_not_lower_the_loss() -> None:
    flat = [replace(x, npu=np.ones(20), torch=np.ones(20)) for x in finals()[:1]]
    assert conclude(tiny("lenet_tutorial"), [*flat, *finals()[1:]]).ok
