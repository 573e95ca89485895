# SPDX-License-Identifier: Apache-2.0
"""A chain has a verdict of its own on every backend: each op on the operands that it really had,
and the drift from torch against what the bounds of its ops explain."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from driver.capture import Capsule, Op, capture, save_capsule
from driver.config import load_config
from driver.isa import ErrorCode, Opcode
from driver.lower import LOWERINGS
from driver.results import OpEvent, RunResult, RunSpec, Shard
from golden.backend import CmodelBackend
from tb.ops import session as sessions
from tb.ops.chain import Chain
from tb.ops.drift import FACTOR, multiple
from tb.ops.runner import run_ops
from tb.tests import replay

CONFIG_FILE = Path(__file__).parents[1] / "sim_config.yaml"
CONFIG = load_config(CONFIG_FILE, "small")


class Quiet:
    def plan(self, ops: int) -> None: ...

    def op(self, event: OpEvent) -> None: ...

    def note(self, text: str) -> None: ...


class Layers(torch.nn.Module):
    """Two layers, a softmax, and a list of tensors that the CPU scales in place."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(12, 12), torch.nn.Linear(12, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = torch.tanh(self.first(x))
        parts = [hidden + 1.0, hidden * 2.0]
        torch._foreach_mul_(parts, 1.02)
        return torch.softmax(self.second(parts[0] - parts[1]), -1)


def model() -> Capsule:
    torch.manual_seed(5)
    return capture(Layers(), torch.randn(9, 12), name="layers")


def run(tmp_path: Path, **changes: object) -> RunResult:
    save_capsule(model(), tmp_path / "capsule")
    spec = RunSpec(
        test="replay", config="small", config_file=CONFIG_FILE, seed=1, backend="cmodel",
        waves="none", out=tmp_path, capsules={"capsule": tmp_path / "capsule"}, op_filter=None,
        timeout_s=60.0, allow_cpu=True, modes=("chained",),
    )  # fmt: skip
    return run_ops(spec.model_copy(update=changes), CONFIG, replay, Quiet())


@pytest.fixture(autouse=True)
def foreach_is_the_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(LOWERINGS, "aten._foreach_mul_.Scalar", raising=False)


def test_every_op_of_a_chain_is_judged_and_has_a_budget(tmp_path: Path) -> None:
    result = run(tmp_path)
    assert result.status == "pass"
    rows = [row for row in result.ops if row.where == "cmodel"]
    assert len(rows) == len(result.ops) - 1 == 7
    for row in rows:
        assert row.elements_compared > 0 and row.torch_bound is not None
        assert row.drift is not None and row.drift.budget is not None
        assert row.drift.max_abs <= row.drift.budget < 1e-4
    assert any(row.drift is not None and row.drift.max_abs > 0 for row in rows)


class WrongTanh(CmodelBackend):
    """A model with a bug in one program of the vector engine."""

    def _execute(self, packet: bytes, seq: int) -> ErrorCode:
        code = super()._execute(packet, seq)
        if int.from_bytes(packet[:4], "little") == Opcode.VECTOR:
            self.memory[int.from_bytes(packet[24:32], "little") + 2] ^= 0x40
        return code


def test_a_wrong_value_fails_a_chain_without_rtl(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "CmodelBackend", WrongTanh)
    result = run(tmp_path)
    assert result.status == "fail"
    assert next(row for row in result.ops if row.status == "fail").op == "aten.tanh.default"


def test_operands_that_are_not_what_earlier_ops_made_are_a_drift(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each op is right for the operands it finds: only the drift shows what was lost."""
    monkeypatch.setattr(Chain, "compute_on_cpu", lambda self, op: None)
    result = run(tmp_path)
    assert result.status == "fail"
    (row,) = [row for row in result.ops if row.status == "fail"]
    assert (row.op, row.blame) == ("aten.sub.Tensor", "precision")
    assert row.drift is not None and row.drift.budget is not None
    assert row.drift.max_abs > 1000 * row.drift.budget
    assert row.failure is not None and "has drifted from torch's by" in row.failure.detail
    assert row.replay_from == result.ops[0].index
    assert result.reproduce.endswith(f"--op {result.ops[0].index}..{row.index}")


def test_a_shard_judges_drift_as_the_whole_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Chain, "compute_on_cpu", lambda self, op: None)
    whole = run(tmp_path)
    parts = [run(tmp_path, shard=Shard(index=index, count=2)) for index in range(2)]
    rows = sorted((row for part in parts for row in part.ops), key=lambda row: row.index)
    assert rows == list(whole.ops)


def test_one_op_of_a_chain_alone_has_no_budget_and_its_prefix_has(tmp_path: Path) -> None:
    whole = run(tmp_path).ops
    last = whole[-1]
    assert last.drift is not None
    alone = run(tmp_path, op_filter=last.index).ops[0]
    assert alone.drift == last.drift.model_copy(update={"budget": None})
    prefix = run(tmp_path, op_filter=last.index, op_from=whole[0].index).ops
    assert prefix == whole


def test_an_element_that_no_bound_is_known_of_leaves_what_follows_without_a_budget(
    tmp_path: Path,
) -> None:
    class Overflowing(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x + 1.0) + torch.mm(x * 3e38, x.t() * 1.0).sum() * 0.0

    capsule = capture(Overflowing(), torch.full((4, 4), 0.9), name="over")
    save_capsule(capsule, tmp_path / "over")
    rows = run(tmp_path, capsules={"capsule": tmp_path / "over"}).ops
    drifts = {row.op: row.drift for row in rows}
    assert drifts["aten.mm.default"] is not None
    assert [row.drift.budget is None for row in rows if row.drift is not None][-1]
    first = drifts["aten.add.Tensor"]
    assert first is not None


def test_a_chain_writes_noise_into_its_results_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A device that does nothing must not be right about zeros."""
    seen: list[int] = []
    place = Chain.place

    def placed(self: Chain, op: Op, written: Sequence[str]) -> object:
        found = place(self, op, written)
        for view in found.results:
            if view is not None:
                seen.append(int(np.count_nonzero(self._pair.elements(view))) * 10 // view.count)
        return found

    monkeypatch.setattr(Chain, "place", placed)
    run(tmp_path)
    assert len(seen) >= 7 and min(seen) >= 9


def test_a_right_result_of_few_elements_is_seldom_beyond_its_budget() -> None:
    """Errors of the runs and of the NPU from one distribution; how often the NPU's is too large."""
    random, trials = np.random.default_rng(1), 1_000_000

    def wrongly_failed(elements: int, times: float) -> float:
        errors = np.abs(random.standard_normal((4, elements, trials), dtype=np.float32))
        return float(np.mean(errors[0].max(0) > times * errors[1:].max((0, 1))))

    assert wrongly_failed(1, FACTOR) > 5e-3
    for elements in (1, 2, 3, 4, 5):
        assert wrongly_failed(elements, multiple(elements)) < 1.5e-4
    assert multiple(1) < 21 and multiple(4) == multiple(896) == FACTOR
