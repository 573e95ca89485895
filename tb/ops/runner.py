# SPDX-License-Identifier: Apache-2.0
"""A whole test of kind "ops": all cases in order, then the waves of the one that matters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from types import ModuleType
from typing import Protocol

from driver.capture import Capsule
from driver.capture.format import HOST_READ
from driver.config import HwConfig
from driver.errors import InputError, Interrupted, VerdictError
from driver.reproduce import reproduce_line
from driver.results import Curve, LedgerRow, OpEvent, OpRow, RunResult, RunSpec, Site
from tb.checks import in_shard
from tb.ops.capsules import is_free
from tb.ops.case import Entry
from tb.ops.chain import ModelOutput
from tb.ops.chained import ChainedOp, ChainedRun
from tb.ops.replay_prefix import with_prefixes
from tb.ops.rows import CpuOp
from tb.ops.session import Session
from tb.ops.stopped import OpStopped, RunBroken, place_of, stopped_row

Runnable = Entry | ChainedOp
Outcome = OpRow | CpuOp


class RunObserver(Protocol):
    """Told of a run while it goes on."""

    def plan(self, ops: int) -> None:
        """`ops`: how many will run."""
        ...

    def op(self, event: OpEvent) -> None:
        """An op is done."""
        ...

    def note(self, text: str) -> None:
        """A line for the user."""
        ...


@dataclass(frozen=True)
class ModelCheck:
    """What a test finds about a model's results as a whole."""

    ok: bool
    text: str
    curves: tuple[Curve, ...] = ()
    """If the model is a training."""


CheckModel = Callable[[Capsule, Sequence[ModelOutput]], ModelCheck]
"""A test module's `conclude`: the results of a chained run, here and in torch."""

_COUNTS = ("elements_compared", "zeros")
_ON_NPU = "lowered to packets"
_VIEW = "moves no data"
_READ = "the host reads an element of the NPU's memory"


def run_ops(
    spec: RunSpec, config: HwConfig, module: ModuleType, progress: RunObserver
) -> RunResult:
    """Run the entries of `module`, all or those that the spec picks.

    A device that stops (it hangs, an assertion fails) fails its op, and the ops after it do not
    run; one that stops when it is brought up fails the run. RunBroken, with the ops that were
    finished, when something around the device stops, or when a SIGINT ends the run.
    """
    entries = list(module.cases(spec, config))
    plan = _Plan(entries, _picked(spec, entries), module, [])
    progress.plan(len(plan.picked))
    stall = getattr(module, "DRAM_STALL", 0)
    state = _RunState()
    try:
        session = Session(spec, config, stall=stall)
    except VerdictError as error:
        return _never_began(spec, error)
    try:
        _take(session, plan, state, progress)
    finally:
        session.close()
    if state.broken is not None:
        assert not isinstance(state.broken.error, VerdictError)
        raise RunBroken(_broken(spec, state), state.broken.error) from state.broken
    if state.interrupted:
        text = f"interrupted after {len(state.rows)} of {len(plan.picked)} ops"
        update = {"status": "error", "message": text}
        raise RunBroken(_result(spec, state, []).model_copy(update=update), Interrupted(text))
    if len(plan.picked) > 1:
        rerun = partial(_rerun, config, plan, stall)
        numbers = [entry.index for entry in _siblings(entries, state.rows)]
        state.rows = with_prefixes(spec, state.rows, numbers, rerun)
    if spec.waves != "none":
        recorder = partial(Session, spec, config, variant="waves", stall=stall)
        _record_waves(spec, recorder, plan, state.rows, progress)
    if all(row.where == "cpu" for row in state.rows):
        found = f"{len(state.rows)}, all on the CPU"
        raise InputError(spec.test, "ops", found, "one for the NPU to run")
    if spec.op_filter is None and (spec.shard is None or spec.shard.index == 0):
        state.ledger.update(_views(entries))
    result = _result(spec, state, plan.checks)
    return result.model_copy(update={"digest": session.digest})


@dataclass
class _RunState:
    """What a run has found so far."""

    rows: list[OpRow] = field(default_factory=list)
    ledger: Counter[tuple[str, Site, str]] = field(default_factory=Counter)
    broken: OpStopped | None = None
    """Where the run ended through no fault of the device."""
    interrupted: bool = False
    notes: list[str] = field(default_factory=list)


def _take(session: Session, plan: _Plan, state: _RunState, progress: RunObserver) -> None:
    """Tell of each row as it comes, up to the op in which something stopped."""

    def add(row: OpRow, reason: str) -> None:
        state.rows.append(row)
        state.ledger[row.op, "host" if reason == _READ else row.where, reason] += 1
        progress.op(OpEvent.of(row))

    try:
        for row, reason in _run(session, plan):
            add(row, reason)
            if session.stopped:
                where = f"op {row.index}, {row.op} in {row.module}, packet by packet"
                state.notes.append(f"the device stopped in {where}: no op after it was run")
                return
    except OpStopped as stop:
        if not isinstance(stop.error, VerdictError):
            state.broken = stop
            return
        add(stopped_row(stop, session.spec), _ON_NPU)
        state.notes.append(f"the device stopped in {place_of(stop.case)}: no op after it was run")
    except KeyboardInterrupt:  # what was finished is told
        state.interrupted = True


def _never_began(spec: RunSpec, error: VerdictError) -> RunResult:
    """The result of a run whose device stops in its reset, or before its first command."""
    said = f"blame rtl: the device stopped before the first op: {error}"
    failed = {"status": "fail", "message": said}
    return _result(spec, _RunState(), []).model_copy(update=failed)


def _siblings(entries: Sequence[Runnable], rows: Sequence[OpRow]) -> list[Runnable]:
    """The entries that may run before the failing ones in a line of theirs: those of one chain, or
    those that are in none."""
    failed = {row.index for row in rows if row.status == "fail"}
    chains = {_chain_of(entry) for entry in entries if entry.index in failed}
    return [entry for entry in entries if _chain_of(entry) in chains]


def _rerun(
    config: HwConfig, plan: _Plan, stall: int, spec: RunSpec, numbers: set[int]
) -> Iterator[OpRow]:
    """The rows of these ops alone, on fresh devices."""
    session = Session(spec, config, stall=stall)
    try:
        yield from (row for row, _ in _run(session, replace(plan, picked=numbers, checks=[])))
    finally:
        session.close()


def _broken(spec: RunSpec, state: _RunState) -> RunResult:
    """The result of a run that broke off: what was finished, and where it ended."""
    stop = state.broken
    assert stop is not None
    return _result(spec, state, []).model_copy(
        update={
            "status": "error",
            "message": f"{place_of(stop.case)}: {stop.error}",
            "reproduce": reproduce_line(spec, stop.case.index),
        }
    )


def _result(spec: RunSpec, state: _RunState, checks: Sequence[ModelCheck]) -> RunResult:
    rows = state.rows
    failed = [row for row in rows if row.status == "fail"]
    wrong = [said.text for said in checks if not said.ok]
    wrong += [] if failed else _vacuous(spec, rows)
    replayed = (failed[0].index, failed[0].replay_from) if failed else ()
    return RunResult(
        test=spec.test,
        status="fail" if failed or wrong else "pass",
        config=spec.config,
        seed=spec.seed,
        backend=spec.backend,
        array=spec.array,
        simulator=spec.simulator,
        mutant=spec.mutant,
        cycles=sum(row.cycles or 0 for row in rows) if spec.backend == "rtl" else None,
        wall_seconds=0.0,
        reproduce=reproduce_line(spec, *replayed),
        message="; ".join(wrong) or None,
        ops=tuple(rows),
        ledger=tuple(
            LedgerRow(op=op, where=where, count=count, reason=reason)
            for (op, where, reason), count in sorted(state.ledger.items())
        ),
        notes=(*state.notes, *(said.text for said in checks)),
        curves=tuple(curve for said in checks for curve in said.curves),
    )


def _vacuous(spec: RunSpec, rows: Sequence[OpRow]) -> list[str]:
    """Why a test without a failure has shown nothing: elements that should be zero are right in
    memory that was never written. One op alone may well be such an op."""
    compared, zeros = (sum(getattr(row, name) for row in rows) for name in _COUNTS)
    if not compared:
        return [f"nothing was compared: {len(rows)} ops, none with an element"]
    if compared == zeros and spec.op_filter is None:
        return [f"nothing but zeros was compared: {zeros} elements, all of which should be zero"]
    return []


def _picked(spec: RunSpec, entries: Sequence[Runnable]) -> set[int]:
    """Indices of the entries to answer for."""
    if spec.op_filter is None:
        return set(in_shard(spec, [entry.index for entry in entries]))
    first = spec.op_filter if spec.op_from is None else spec.op_from
    picked = {entry.index for entry in entries if first <= entry.index <= spec.op_filter}
    if spec.op_filter not in picked:
        expected = f"{entries[0].index} to {entries[-1].index}" if entries else "a test with ops"
        raise InputError("command line", "op", spec.op_filter, expected)
    return picked


@dataclass(frozen=True)
class _Plan:
    """What runs: the entries to answer for among all, and the test that they are of."""

    entries: Sequence[Runnable]
    picked: set[int]
    module: ModuleType
    checks: list[ModelCheck]
    """What the test says of whole models is added here."""

    @property
    def conclude(self) -> CheckModel | None:
        found: CheckModel | None = getattr(self.module, "conclude", None)
        return found

    def chain(self, session: Session, capsule: Capsule) -> ChainedRun:
        return ChainedRun(session, capsule)


def _run(session: Session, plan: _Plan) -> Iterator[tuple[OpRow, str]]:
    """Rows of the picked entries, in order; a capsule's steps run as one chain."""
    for chain, group in groupby(plan.entries, key=_chain_of):
        members = list(group)
        wanted = plan.picked & {entry.index for entry in members}
        if not wanted:
            continue
        if chain is None:
            for entry in members:
                if entry.index in wanted and isinstance(entry, Entry):
                    yield _accounted(session.run(entry.make()))
            continue
        steps = [entry for entry in members if isinstance(entry, ChainedOp)]
        run = plan.chain(session, steps[0].capsule)
        try:
            yield from map(_accounted, run.rows(steps, wanted))
            plan.checks.extend(ModelCheck(ok=True, text=text) for text in run.remarks())
            if plan.conclude is not None and steps[-1].index in wanted:
                plan.checks.append(plan.conclude(steps[0].capsule, run.chain.finals()))
        finally:
            run.chain.close()


def _chain_of(entry: Runnable) -> str | None:
    return f"{entry.capsule.name} {entry.capsule.hash}" if isinstance(entry, ChainedOp) else None


def _accounted(outcome: Outcome) -> tuple[OpRow, str]:
    if isinstance(outcome, CpuOp):
        return outcome.row, outcome.reason
    return outcome, _READ if outcome.op == HOST_READ else _ON_NPU


def _views(entries: Sequence[Runnable]) -> Counter[tuple[str, Site, str]]:
    """The capsules' ops that cost nothing."""
    found = {entry.capsule.hash: entry.capsule for entry in entries if entry.capsule is not None}
    ops = (op for capsule in found.values() for op in capsule.ops)
    return Counter((op.op, "view", _VIEW) for op in ops if is_free(op))


def _record_waves(
    spec: RunSpec,
    recorder: Callable[[], Session],
    plan: _Plan,
    rows: Sequence[OpRow],
    progress: RunObserver,
) -> None:
    """Run one op again in a fresh simulator that records: the first that failed, else the first.

    Waves of a whole test would be terabytes; the op's own are what one looks at.
    """
    on_npu = [row for row in rows if row.where != "cpu"]
    wanted = next((row for row in on_npu if row.status == "fail"), on_npu[0] if on_npu else None)
    if wanted is None or spec.backend != "rtl":
        progress.note("no waves: nothing ran on the RTL")
        return
    path = spec.out / f"waves.{spec.waves}"
    session = recorder()
    row = wanted
    try:
        assert session.rtl is not None
        session.rtl.record_waves(path)
        with suppress(OpStopped):  # the waves of a device that stops end there
            ((row, _),) = _run(session, replace(plan, picked={wanted.index}, checks=[]))
            session.rtl.stop_waves()
    finally:
        session.close()
    cycle = None if row.failure is None else row.failure.cycle
    wrong = "" if cycle is None else f", wrong in cycle {cycle}"
    progress.note(f"waves of op {wanted.index}{wrong}: {path}")
