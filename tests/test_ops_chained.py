# SPDX-License-Identifier: Apache-2.0
"""A model's ops on the NPU's own results: buffers, liveness, drift, and one step alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from driver.capture import Capsule, capture, save_capsule
from driver.config import HwConfig, load_config
from driver.errors import UnsupportedOp
from driver.isa import ErrorCode, Opcode
from driver.results import Mode, OpEvent, OpRow, RunResult, RunSpec, Shard
from golden.backend import CmodelBackend
from tb.ops.capsules import capsule_steps, model_entries
from tb.ops.chained import ChainedOp, ChainedRun
from tb.ops.drift import drift_between
from tb.ops.rows import CpuOp
from tb.ops.runner import run_ops
from tb.ops.session import Session
from tb.tests import replay

CONFIG_FILE = Path(__file__).parents[1] / "sim_config.yaml"
CONFIG: HwConfig = load_config(CONFIG_FILE, "small")


class Small(torch.nn.Module):
    """Views, a broadcast, equal constants in two buffers, ops in place, a cache that grows."""

    def __init__(self) -> None:
        super().__init__()
        self.proj = torch.nn.Linear(6, 6)
        self.between = torch.nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first, second = torch.zeros(3, 6), torch.zeros(3, 6)
        cache = torch.empty(0, 6)
        for _ in range(2):
            x = self.between(torch.tanh(self.proj(x)) * x[:, :1])
            cache = torch.cat([cache, x])
            first[1:].add_(x[1:])
        return torch.mm(cache, (first + second).t()).relu_()


class Unknown(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.lgamma(x)


def model(between: torch.nn.Module | None = None) -> Capsule:
    torch.manual_seed(4)
    made = Small()
    if between is not None:
        made.between = between
    return capture(made, torch.randn(3, 6), name="small")


def spec(out: Path, backend: str = "cmodel", **changes: object) -> RunSpec:
    base = RunSpec(
        test="replay", config="small", config_file=CONFIG_FILE, seed=1, backend="cmodel",
        waves="none", out=out, capsules={}, op_filter=None, timeout_s=60.0,
    )  # fmt: skip
    return base.model_copy(update={"backend": backend, **changes})


def steps_of(capsule: Capsule) -> list[ChainedOp]:
    return list(capsule_steps(capsule, iter(range(10_000))))


def run_all(session: Session, capsule: Capsule, wanted: set[int] | None = None) -> list[OpRow]:
    steps = steps_of(capsule)
    run = ChainedRun(session, capsule)
    chosen = {step.index for step in steps} if wanted is None else wanted
    rows = list(run.rows(steps, chosen))
    run.chain.close()
    assert all(isinstance(row, OpRow) for row in rows)
    return rows  # type: ignore[return-value]


def test_a_model_runs_on_its_own_results(tmp_path: Path) -> None:
    capsule = model()
    session = Session(spec(tmp_path), CONFIG)
    steps = steps_of(capsule)
    run = ChainedRun(session, capsule)
    rows = list(run.rows(steps, {step.index for step in steps}))
    assert len(rows) == len([op for op in capsule.ops if not op.view]) - 1 > 14
    (final,) = run.chain.finals()
    assert final.npu.shape == final.torch.shape == (6, 3)
    assert np.abs(final.npu - final.torch).max() < 1e-5
    assert np.abs(final.torch).max() > 0.01
    drifts = [row.drift for row in rows if isinstance(row, OpRow)]
    assert all(drift is not None and drift.cosine > 0.999999 for drift in drifts if drift)
    assert any(drift.max_abs > 0 for drift in drifts if drift), "its own results, not torch's"


def used_bytes(session: Session) -> list[int]:
    return [use.used_bytes for use in session.pair._devices[0].memory_report()]


def test_memory_is_freed_when_nobody_needs_it_and_at_the_end(tmp_path: Path) -> None:
    class Long(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for _ in range(30):
                x = torch.tanh(x + 1)
            return x

    capsule = capture(Long(), torch.randn(64, 64), name="long")
    session = Session(spec(tmp_path), CONFIG)
    before = used_bytes(session)
    rows = run_all(session, capsule)
    assert used_bytes(session) == before
    peak = max(use.peak_bytes for use in session.pair._devices[0].memory_report())
    assert len(rows) == 60
    assert peak - max(before) < 8 * 64 * 64 * 4


class Wrong(CmodelBackend):
    """Stands in for an RTL: spoils the products."""

    cycle = 0
    executed = 0

    def _execute(self, packet: bytes, seq: int) -> ErrorCode:
        code = super()._execute(packet, seq)
        self.executed += 1
        if int.from_bytes(packet[:4], "little") == Opcode.MATMUL:
            self.memory[int.from_bytes(packet[24:32], "little") + 5] ^= 0x40
        return code

    def last_writer(self, address: int) -> int | None:
        return 7


@pytest.fixture
def wrong(monkeypatch: pytest.MonkeyPatch) -> Wrong:
    device = Wrong(CONFIG)
    monkeypatch.setattr(Session, "_open_rtl", lambda *_: device)
    return device


def test_what_the_rtl_gets_wrong_is_the_ops_own_and_nobody_elses(
    tmp_path: Path, wrong: Wrong
) -> None:
    rows = run_all(Session(spec(tmp_path, "rtl"), CONFIG), model())
    failed = [row for row in rows if row.status == "fail"]
    assert {row.op for row in failed} == {"aten.addmm.default", "aten.mm.default"}
    assert [row.op for row in rows].count("aten.addmm.default") == 2 and len(failed) == 3
    assert {row.blame for row in failed} == {"rtl"}
    for row in failed:
        assert row.failure is not None and row.failure.element == (0, 1)
        assert row.drift is not None and row.drift.max_abs < 1e-5


def test_one_step_alone_runs_the_rtl_for_that_step_only(tmp_path: Path, wrong: Wrong) -> None:
    whole = run_all(Session(spec(tmp_path, "rtl"), CONFIG), model())
    total, wrong.executed = wrong.executed, 0
    wanted = whole[-3].index
    (alone,) = run_all(Session(spec(tmp_path, "rtl"), CONFIG), model(), {wanted})
    assert alone == whole[-3]
    assert 0 < wrong.executed < total / 5


def test_an_op_without_packets_stops_the_run_or_goes_to_the_cpu_with_a_reason(
    tmp_path: Path,
) -> None:
    capsule = model(Unknown())
    with pytest.raises(UnsupportedOp, match=r"aten.lgamma.default \(float32\) in small:between"):
        run_all(Session(spec(tmp_path), CONFIG), capsule)
    steps = steps_of(capsule)
    run = ChainedRun(Session(spec(tmp_path, allow_cpu=True), CONFIG), capsule)
    rows = list(run.rows(steps, {step.index for step in steps}))
    on_cpu = [row for row in rows if isinstance(row, CpuOp)]
    assert [found.row.op for found in on_cpu] == ["aten.lgamma.default"] * 2
    assert all(row.reason.startswith("NOT ON THE NPU") for row in on_cpu)
    (final,) = run.chain.finals()
    assert np.allclose(final.npu, final.torch, atol=1e-4)


class Quiet:
    def plan(self, ops: int) -> None: ...

    def op(self, event: OpEvent) -> None: ...

    def note(self, text: str) -> None: ...


def run_replay(tmp_path: Path, *modes: Mode, **changes: object) -> RunResult:
    save_capsule(model(), tmp_path / "capsule")
    asked = spec(tmp_path, modes=modes, capsules={"capsule": tmp_path / "capsule"}, **changes)
    return run_ops(asked, CONFIG, replay, Quiet())


def test_an_op_has_the_same_number_in_every_mode(tmp_path: Path) -> None:
    isolated, chained, both = (
        run_replay(tmp_path, *modes)
        for modes in (("isolated",), ("chained",), ("isolated", "chained"))
    )
    assert [row.index for row in both.ops] == [row.index for row in (*isolated.ops, *chained.ops)]
    assert [row.op for row in isolated.ops] == [row.op for row in chained.ops]
    assert {row.drift is None for row in isolated.ops} == {True}
    assert {row.drift is None for row in chained.ops} == {False}
    free = sum(row.count for row in both.ledger if row.where == "view")
    assert free == len([op for op in model().ops if op.view]) + 1  # the empty cache
    assert sum(row.count for row in both.ledger if row.where == "cmodel") == len(both.ops)


def test_the_shards_of_a_chain_are_the_whole(tmp_path: Path) -> None:
    whole = run_replay(tmp_path, "chained")
    parts = [
        run_replay(tmp_path, "chained", shard=Shard(index=index, count=3)) for index in range(3)
    ]
    rows = sorted((row for part in parts for row in part.ops), key=lambda row: row.index)
    assert rows == list(whole.ops)


def test_entries_are_numbered_without_gaps(tmp_path: Path) -> None:
    save_capsule(model(), tmp_path / "capsule")
    asked = spec(
        tmp_path, modes=("isolated", "chained"), capsules={"capsule": tmp_path / "capsule"}
    )
    entries = list(model_entries(asked))
    assert [entry.index for entry in entries] == list(range(len(entries)))


def test_drift_is_zero_where_both_are_the_same_infinity_or_nan() -> None:
    values = np.array([1.0, np.inf, np.nan, -2.0])
    same = drift_between(values, values)
    assert (same.max_abs, same.max_rel, same.cosine) == (0.0, 0.0, pytest.approx(1))
    other = drift_between(np.array([1.0, np.inf, np.nan, -2.5]), values)
    assert (other.max_abs, other.max_rel) == (0.5, 0.25)
    assert 0.99 < other.cosine < 1
    assert drift_between(np.array([np.inf]), np.array([1.0])).max_abs == np.inf
    assert drift_between(np.array([0.0]), np.array([0.0])).cosine == 1.0
