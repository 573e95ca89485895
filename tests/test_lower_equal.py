# SPDX-License-Identifier: Apache-2.0
"""torch.equal: one truth value for two whole tensors, as a model's own code asks for it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from driver.capture import capture, save_capsule
from driver.config import load_config
from driver.results import RunResult, RunSpec
from regress.paths import CONFIG_FILE
from tb.ops.runner import RunObserver, run_ops
from tb.tests import replay

ONES = torch.arange(1, 22).reshape(3, 7)


class Asks(torch.nn.Module):
    def __init__(self, other: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("other", other)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1 if torch.equal(x, self.other) else x * 2


class Quiet(RunObserver):
    def plan(self, ops: int) -> None: ...

    def op(self, event: object) -> None: ...

    def note(self, text: str) -> None: ...


def run(x: torch.Tensor, other: torch.Tensor, out: Path) -> tuple[RunResult, bool]:
    made = capture(Asks(other), x, name="asks")
    save_capsule(made, out / "capsule")
    spec = RunSpec(
        test="replay", config="small", config_file=CONFIG_FILE, seed=1, backend="cmodel",
        waves="none", out=out, capsules={"capsule": out / "capsule"}, op_filter=None, timeout_s=60,
    )  # fmt: skip
    return run_ops(spec, load_config(CONFIG_FILE, "small"), replay, Quiet()), torch.equal(x, other)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int32, torch.int64])
@pytest.mark.parametrize("change", ["none", "last", "shape"])
def test_equal_is_judged_as_an_op(tmp_path: Path, dtype: torch.dtype, change: str) -> None:
    x = ONES.to(dtype)
    other = x.clone()
    if change == "last":
        other[-1, -1] += 1
    elif change == "shape":
        other = other.reshape(7, 3)
    result, same = run(x, other, tmp_path)
    (row,) = (row for row in result.ops if row.op == "aten.equal.default")
    assert (row.status, row.where, row.elements_compared) == ("pass", "cmodel", 1)
    assert row.zeros == int(not same)


def test_a_wrong_truth_value_is_a_failed_op(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("driver.lower.extremes.every", lambda b, out, same: b.fill(out, 0))
    result, _ = run(ONES.float(), ONES.float(), tmp_path)
    assert [row.op for row in result.ops if row.status == "fail"] == ["aten.equal.default"]
