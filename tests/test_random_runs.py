# SPDX-License-Identifier: Apache-2.0
"""Random ops in a run of a capsule: each has its own stream, and what follows works on the numbers
that torch recorded."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from driver.capture import Capsule, capture, load_capsule, save_capsule
from driver.capture.single import recall, recorded_stream, single_call
from driver.config import load_config
from driver.results import OpRow, RunSpec
from golden.calls import answers
from tb.ops.capsules import capsule_steps
from tb.ops.case import recorded_case
from tb.ops.chained import ChainedRun
from tb.ops.session import Session

CONFIG_FILE = Path(__file__).parents[1] / "sim_config.yaml"
CONFIG = load_config(CONFIG_FILE, "small")


class Sampler(torch.nn.Module):
    """Dropout twice, a choice by a random mask, and a sample of categories."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.nn.functional.dropout(x, 0.3, training=True) + 1
        x = torch.nn.functional.dropout(x, 0.3, training=True)
        chosen = x[torch.rand_like(x) < 0.5]
        return torch.multinomial(chosen.abs() + 0.1, 3).float() + torch.randn(3)


@pytest.fixture(scope="module")
def capsule() -> Capsule:
    return capture(Sampler(), torch.rand(4, 30) + 0.5, name="sampler", seed=5)


def chained(capsule: Capsule, out: Path) -> list[OpRow]:
    spec = RunSpec(
        test="replay", config="small", config_file=CONFIG_FILE, seed=1, backend="cmodel",
        waves="none", out=out, capsules={}, op_filter=None, timeout_s=60.0,
    )  # fmt: skip
    steps = list(capsule_steps(capsule, iter(range(100))))
    run = ChainedRun(Session(spec, CONFIG), capsule)
    rows = list(run.rows(steps, {step.index for step in steps}))
    run.chain.close()
    return [row for row in rows if isinstance(row, OpRow)]


def test_what_follows_a_random_op_is_held_to_torchs_record(
    capsule: Capsule, tmp_path: Path
) -> None:
    rows = chained(capsule, tmp_path)
    names = {row.op.split(".")[1] for row in rows}
    assert {"bernoulli_", "index", "multinomial", "rand_like", "randn"} <= names
    assert [row.status for row in rows] == ["pass"] * len(rows)
    assert sum(row.elements_compared for row in rows) > 500
    assert all(row.drift.max_abs < 1e-5 for row in rows if row.drift)


def test_a_wrong_stream_is_a_failed_verdict(
    capsule: Capsule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tb.ops import chain  # noqa: PLC0415

    right = recorded_stream
    monkeypatch.setattr(
        chain, "recorded_stream", lambda made, op: right(made, made.ops[max(op.index - 1, 0)])
    )
    monkeypatch.setattr(chain.Chain, "case", lambda self, op, at: recorded_case(capsule, op, at))
    failed = [row.op for row in chained(capsule, tmp_path) if row.status == "fail"]
    assert "aten.bernoulli_.float" in failed and "aten.randn.default" in failed


def test_equal_ops_of_a_run_draw_different_numbers_and_a_replay_the_same(capsule: Capsule) -> None:
    drawn = [op for op in capsule.ops if "bernoulli" in op.op]
    assert [recorded_stream(capsule, op).op for op in drawn] == [op.index for op in drawn]
    assert {recorded_stream(capsule, op).seed for op in drawn} == {5}
    masks = []
    for op in (*drawn, drawn[0]):
        (mask,) = answers(recorded_case(capsule, op, 0).call)
        assert mask is not None
        masks.append(mask)
    assert not torch.equal(masks[0], masks[1])
    assert torch.equal(masks[0], masks[2])


def test_an_op_taken_out_of_a_run_draws_what_it_drew_there(
    capsule: Capsule, tmp_path: Path
) -> None:
    op = next(op for op in capsule.ops if op.op.startswith("aten.bernoulli_"))
    assert op.index > 0
    save_capsule(single_call("alone", [recall(capsule, op.index, {})]), tmp_path / "alone")
    alone = load_capsule(tmp_path / "alone")
    assert recorded_stream(alone, alone.ops[0]) == recorded_stream(capsule, op)
    masks = [
        answers(recorded_case(source, found, 0).call)[0]
        for source, found in ((capsule, op), (alone, alone.ops[0]))
    ]
    assert masks[0] is not None
    assert masks[1] is not None
    assert torch.equal(masks[0], masks[1])
