# SPDX-License-Identifier: Apache-2.0
"""A whole test of kind "ops": all cases in order, then the waves of the one that matters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from types import ModuleType
from typing import Protocol

from driver.config import HwConfig
from driver.errors import InputError
from driver.results import LedgerRow, OpEvent, OpRow, RunResult, RunSpec, Site, reproduce_line
from tb.ops.case import CpuOp, Entry
from tb.ops.session import Session


class Progress(Protocol):
    """Who watches."""

    def plan(self, ops: int) -> None:
        """So many ops will run."""
        ...

    def op(self, event: OpEvent) -> None:
        """One is done."""
        ...

    def note(self, text: str) -> None:
        """Something to tell while the user waits."""
        ...


_ON_NPU = "lowered to packets"


def run_ops(spec: RunSpec, config: HwConfig, module: ModuleType, progress: Progress) -> RunResult:
    """Run the entries of `module`, all or the one that the spec picks."""
    entries = _picked(spec, list(module.cases(spec, config)))
    progress.plan(len(entries))
    rows: list[OpRow] = []
    ledger: Counter[tuple[str, Site, str]] = Counter()
    stall = getattr(module, "DRAM_STALL", 0)
    session = Session(spec, config, stall=stall)
    try:
        for entry in entries:
            row, reason = _run_entry(session, entry)
            rows.append(row)
            ledger[row.op, row.where, reason] += 1
            progress.op(OpEvent.of(row))
    finally:
        session.close()
    if spec.waves != "none":
        recorder = partial(Session, spec, config, variant=f"waves-{spec.waves}", stall=stall)
        _record_waves(spec, recorder, entries, rows, progress)
    if not any(row.elements_compared or row.status == "fail" for row in rows):
        raise InputError(spec.test, "ops", f"{len(rows)}, all on the CPU", "one for the NPU to run")
    failed = [row for row in rows if row.status == "fail"]
    return RunResult(
        test=spec.test,
        status="fail" if failed else "pass",
        config=spec.config,
        seed=spec.seed,
        backend=spec.backend,
        cycles=sum(row.cycles or 0 for row in rows) if spec.backend == "rtl" else None,
        wall_seconds=0.0,
        reproduce=reproduce_line(spec, failed[0].index if failed else None),
        message=None,
        ops=tuple(rows),
        ledger=tuple(
            LedgerRow(op=op, where=where, count=count, reason=reason)
            for (op, where, reason), count in sorted(ledger.items())
        ),
    )


def _picked(spec: RunSpec, entries: Sequence[Entry]) -> list[Entry]:
    if spec.op_filter is None:
        return _sharded(spec, entries)
    picked = [entry for entry in entries if entry.index == spec.op_filter]
    if not picked:
        expected = f"0 to {entries[-1].index}" if entries else "a test with ops"
        raise InputError("command line", "op", spec.op_filter, expected)
    return picked


def _sharded(spec: RunSpec, entries: Sequence[Entry]) -> list[Entry]:
    if spec.shard is None:
        return list(entries)
    picked = [entry for entry in entries if spec.shard.holds(entry.index)]
    if not picked:
        expected = f"at most {len(entries)} shards, one op each"
        raise InputError("command line", "shard", spec.shard, expected)
    return picked


def _run_entry(session: Session, entry: Entry) -> tuple[OpRow, str]:
    outcome = session.run(entry.make())
    if isinstance(outcome, CpuOp):
        return outcome.row(), outcome.reason
    return outcome, _ON_NPU


def _record_waves(
    spec: RunSpec,
    recorder: Callable[[], Session],
    entries: Sequence[Entry],
    rows: Sequence[OpRow],
    progress: Progress,
) -> None:
    """Run one op again in a fresh simulator that records: the first that failed, else the first.

    Waves of a whole test would be terabytes; the op's own are what one looks at.
    """
    on_npu = [row for row in rows if row.where != "cpu"]
    wanted = next((row for row in on_npu if row.status == "fail"), on_npu[0] if on_npu else None)
    if wanted is None or spec.backend != "rtl":
        progress.note("no waves: nothing ran on the RTL")
        return
    entry = next(entry for entry in entries if entry.index == wanted.index)
    path = spec.out / f"waves.{spec.waves}"
    session = recorder()
    try:
        assert session.rtl is not None
        session.rtl.record_waves(path)
        row, _ = _run_entry(session, entry)
        session.rtl.stop_waves()
    finally:
        session.close()
    cycle = None if row.failure is None else row.failure.cycle
    wrong = "" if cycle is None else f", wrong in cycle {cycle}"
    progress.note(f"waves of op {wanted.index}{wrong}: {path}")
