# SPDX-License-Identifier: Apache-2.0
"""Ops that the CPU runs inside a chain: what they write into their arguments is there for the next
op, and what was drawn at random is what the capsule has."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from driver.capture import Capsule, capture
from driver.capture.decompose import Definition, definition
from driver.config import load_config
from driver.errors import UnsupportedOp
from driver.lower import LOWERINGS
from driver.results import OpRow, RunSpec
from tb.ops.capsules import capsule_steps
from tb.ops.chain import Chain
from tb.ops.chained import ChainedRun
from tb.ops.rows import CpuOp
from tb.ops.session import Session

CONFIG_FILE = Path(__file__).parents[1] / "sim_config.yaml"
CONFIG = load_config(CONFIG_FILE, "small")


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    spec = RunSpec(
        test="replay", config="small", config_file=CONFIG_FILE, seed=1, backend="cmodel",
        waves="none", out=tmp_path, capsules={}, op_filter=None, timeout_s=60.0, allow_cpu=True,
        modes=("chained",),
    )  # fmt: skip
    made = Session(spec, CONFIG)
    yield made
    made.close()


def run(session: Session, capsule: Capsule) -> tuple[list[OpRow | CpuOp], Chain]:
    steps = list(capsule_steps(capsule, iter(range(1000))))
    chained = ChainedRun(session, capsule)
    return list(chained.rows(steps, {step.index for step in steps})), chained.chain


def on_cpu(rows: list[OpRow | CpuOp]) -> list[str]:
    return [found.row.op for found in rows if isinstance(found, CpuOp)]


def refused(monkeypatch: pytest.MonkeyPatch, *ops: str) -> None:
    """Whatever the table of ops holds by now: these are the CPU's, and recorded whole."""
    for op in ops:
        monkeypatch.delitem(LOWERINGS, op, raising=False)

    def whole(func: torch._ops.OpOverload) -> Definition | None:
        return None if str(func) in ops else definition(func)

    monkeypatch.setattr("driver.capture.recorder.definition", whole)


class Foreach(torch.nn.Module):
    """Scales in place, through an op that returns nothing."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = [x + 1.0, x * 2.0]
        torch._foreach_mul_(parts, 1.02)
        return parts[0] + parts[1]


class Statistics(torch.nn.Module):
    """Training: the running mean is written by an op that does not say so."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(6, momentum=1.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.norm(x * 1.0)
        return self.norm.running_mean + 0.5


class Rows(torch.nn.Module):
    """Writes through a view: the whole buffer is read afterwards."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x + 1.0
        y[1:3].lgamma_()
        return y * 2.0


class Noise(torch.nn.Module):
    """Random numbers, in place and not."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 1.0 + torch.rand_like(x) + torch.empty_like(x).normal_()


class Double(torch.nn.Module):
    """A type that the NPU does not hold, between ops that it has."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x + 1.0).double().cumsum(0).float() * 2.0


@pytest.mark.parametrize(
    ("module", "ops"),
    [
        (Foreach(), ("aten._foreach_mul_.Scalar",)),
        (Statistics(), ("aten.native_batch_norm.default",)),
        (Rows(), ("aten.lgamma_.default",)),
        (Noise(), ("aten.rand_like.default", "aten.normal_.default")),
        (Double(), ("aten._to_copy.default", "aten.cumsum.default", "aten._to_copy.default")),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, torch.nn.Module) else "",
)
def test_what_the_cpu_writes_or_draws_is_what_torch_had(
    session: Session,
    monkeypatch: pytest.MonkeyPatch,
    module: torch.nn.Module,
    ops: tuple[str, ...],
) -> None:
    refused(monkeypatch, *(op for op in ops if op != "aten._to_copy.default"))
    torch.manual_seed(3)
    capsule = capture(module, 8.5 + torch.rand(5, 6), name="cpu", seed=11)
    rows, chain = run(session, capsule)
    assert on_cpu(rows) == list(ops)
    (final,) = chain.finals()
    assert np.abs(final.torch).max() > 1
    assert np.abs(final.npu - final.torch).max() <= 1e-5 * np.abs(final.torch).max()
    assert not [row for row in rows if isinstance(row, OpRow) and row.status == "fail"]
    chain.close()


def test_a_random_op_whose_written_argument_was_not_recorded_is_refused(session: Session) -> None:
    class Leaky(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            noise = torch.empty_like(x)
            made = torch.ops.aten.rrelu_with_noise(x - 1.0, noise, 0.1, 0.3, True)
            return made + noise

    capsule = capture(Leaky(), torch.randn(4, 4), name="leaky")
    with pytest.raises(UnsupportedOp, match=r"rrelu_with_noise.*noise.*was not recorded"):
        run(session, capsule)
