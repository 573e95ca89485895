# SPDX-License-Identifier: Apache-2.0
"""A model with ops that the NPU does not have: all of them in one message, before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from driver.capture import Capsule, capture, save_capsule
from driver.config import load_config
from driver.errors import UnsupportedOp
from driver.results import OpEvent, RunResult, RunSpec
from tb.ops.capsules import is_free
from tb.ops.refusals import refusal
from tb.ops.runner import run_ops
from tb.tests import replay
from workloads._architectures import build

CONFIG_FILE = Path(__file__).parents[1] / "sim_config.yaml"


class Odd(torch.nn.Module):
    """lgamma three times in two modules, digamma, and a type that the NPU does not hold."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Gamma(), Gamma()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.lgamma(self.second(self.first(x)) + 2)
        return torch.digamma(x.double() + 1).float()


class Gamma(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.lgamma(x)


class Quiet:
    def __init__(self) -> None:
        self.ran = 0

    def plan(self, ops: int) -> None: ...

    def op(self, event: OpEvent) -> None:
        self.ran += 1

    def note(self, text: str) -> None: ...


def run(folder: Path, capsule: Capsule, progress: Quiet, *, allow_cpu: bool) -> RunResult:
    save_capsule(capsule, folder / "capsule")
    spec = RunSpec(
        test="replay", config="small", config_file=CONFIG_FILE, seed=1, backend="cmodel",
        waves="none", out=folder, capsules={"capsule": folder / "capsule"}, op_filter=None,
        timeout_s=60.0, allow_cpu=allow_cpu,
    )  # fmt: skip
    return run_ops(spec, load_config(CONFIG_FILE, "small"), replay, progress)


def test_every_refused_op_is_named_with_type_count_and_module(tmp_path: Path) -> None:
    capsule, progress = capture(Odd(), torch.full((3,), 2.5), name="odd"), Quiet()
    with pytest.raises(UnsupportedOp) as caught:
        run(tmp_path, capsule, progress, allow_cpu=False)
    text = str(caught.value)
    assert "\n" not in text
    assert text.startswith("odd: ops: got 7 that the NPU cannot run: ")
    assert "aten.lgamma.default (float32) ×3 in first, second and 1 more" in text
    assert "aten.digamma.default (float64) ×1 in odd" in text
    assert "float64" in text
    assert text.endswith("expected ops that the NPU has, or --allow-cpu")
    assert progress.ran == 0
    done = run(tmp_path, capsule, progress, allow_cpu=True)
    assert sum(row.where == "cpu" for row in done.ops) == 7


def test_what_is_foretold_is_what_a_run_refuses() -> None:
    """All ops of a model that the NPU runs are lowered without memory as well."""
    module, inputs = build("gpt2", 1)
    capsule = capture(module, inputs, name="gpt2")
    asked, hw = [op for op in capsule.ops if not is_free(op)], load_config(CONFIG_FILE, "small")
    assert len(asked) > 60
    assert [refusal(capsule, op, hw) for op in asked] == [None] * len(asked)
