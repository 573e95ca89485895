# SPDX-License-Identifier: Apache-2.0
"""A chain whose model writes to its own tensors behind torch's back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from driver.capture import capture
from driver.config import load_config
from driver.results import OpRow, RunSpec
from tb.ops.capsules import capsule_steps
from tb.ops.chained import ChainedRun
from tb.ops.session import Session

CONFIG_FILE = Path(__file__).parents[1] / "sim_config.yaml"


class Counter(torch.nn.Module):
    """Two sums with a buffer that changes in between."""

    n: torch.Tensor

    def __init__(self, change: Callable[[torch.Tensor], object]) -> None:
        super().__init__()
        self.register_buffer("n", torch.full((3,), 2.0))
        self.change = change

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first = x + self.n
        self.change(self.n)
        second = first * self.n
        first.data[:1] = 40.0
        return second + first


def by_numpy(n: torch.Tensor) -> None:
    n.numpy()[:] = 5


@pytest.mark.parametrize("change", [by_numpy, lambda n: n.add_(3), lambda n: n.data.add_(3)])
def test_a_chain_sees_what_the_models_own_code_wrote(
    tmp_path: Path, change: Callable[[torch.Tensor], object]
) -> None:
    capsule = capture(Counter(change), torch.tensor([1.0, -1.0, 0.5]), name="counter")
    spec = RunSpec(
        test="replay", config="small", config_file=CONFIG_FILE, seed=1, backend="cmodel",
        waves="none", out=tmp_path, capsules={}, op_filter=None, timeout_s=60.0,
    )  # fmt: skip
    run = ChainedRun(Session(spec, load_config(CONFIG_FILE, "small")), capsule)
    steps = list(capsule_steps(capsule, iter(range(1000))))
    rows = list(run.rows(steps, {step.index for step in steps}))
    assert all(isinstance(row, OpRow) and row.status == "pass" for row in rows)
    (final,) = run.chain.finals()
    assert np.array_equal(final.npu, final.torch)
    assert final.npu.tolist() == [55.0, 6.0, 15.0]
