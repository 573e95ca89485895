# SPDX-License-Identifier: Apache-2.0
"""The scheduler on a pool of nothing: no process, no clock, no database."""

from __future__ import annotations

import io
import os
import signal
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from nightly_host import spec_of
from rich.console import Console

from driver.errors import InfrastructureError
from regress.nightly.display import PlanDisplay
from regress.nightly.job import JobSpec, skipped
from regress.nightly.pool import LocalPool
from regress.nightly.priority import PastAttempt, by_priority
from regress.nightly.scheduler import (
    RunControl,
    Scheduler,
    SchedulerCallbacks,
    TimeBudget,
    interruptible,
)
from regress.results.model import Attempt, JobStatus, PlannedJob, SkipCause

ITEMS = tuple(PlannedJob("quick", "small", seed, "rtl", ordinal=seed) for seed in range(6))


def _job(item: PlannedJob) -> JobSpec:
    return JobSpec("p", item, 1, spec_of(item, Path("/nowhere")), "i")


@dataclass
class FakePool:
    """Gives a job back when it has been asked for twice; killed once cancelled."""

    slots: int = 2
    jobs: deque[JobSpec] = field(default_factory=deque)
    most: int = 0
    cancelled: bool = False
    closed: bool = False
    empty: bool = True

    def submit(self, job: JobSpec) -> None:
        self.jobs.append(job)
        self.most = max(self.most, len(self.jobs))

    def next(self, timeout_s: float) -> Attempt | None:
        self.empty = not self.empty
        if self.empty:
            return None
        state = JobStatus.KILLED if self.cancelled else JobStatus.PASS
        return self.jobs.popleft().attempt(state)

    def cancel(self) -> None:
        self.cancelled = True

    def close(self) -> None:
        self.closed = True


class Watcher:
    """Sees everything, and may do something at each end."""

    def __init__(self, at_end: Callable[[int], None] = lambda count: None) -> None:
        self.states: list[JobStatus] = []
        self.ticks = 0
        self._at_end = at_end

    def started(self, item: PlannedJob) -> None:
        pass

    def done(self, item: PlannedJob, attempt: Attempt) -> None:
        assert attempt.item_id == item.id
        self.states.append(attempt.status)
        self._at_end(len(self.states))

    def tick(self) -> None:
        self.ticks += 1


def _run(
    pool: FakePool,
    watcher: Watcher,
    control: RunControl | None = None,
    budget: TimeBudget | None = None,
    items: tuple[PlannedJob, ...] = ITEMS,
) -> list[Attempt]:
    stored: list[Attempt] = []

    def unaffordable(item: PlannedJob) -> Attempt:
        return skipped("p", item, 1, SkipCause.BUDGET, "budget")

    handlers = SchedulerCallbacks(_job, stored.append, unaffordable)
    Scheduler(pool, handlers, watcher, control or RunControl(), budget).run(items)
    return stored


def test_every_item_comes_to_one_state_and_no_more_run_than_there_are_slots() -> None:
    pool, watcher = FakePool(), Watcher()
    stored = _run(pool, watcher)
    assert sorted(a.item_id for a in stored) == sorted(item.id for item in ITEMS)
    assert pool.most == 2
    assert pool.closed
    assert watcher.ticks > 0


def test_draining_starts_nothing_more_and_loses_nothing() -> None:
    control, pool = RunControl(), FakePool()
    watcher = Watcher(lambda count: control.interrupt() if count == 2 else None)
    stored = _run(pool, watcher, control)
    assert [a.status for a in stored] == [JobStatus.PASS] * 3  # two done, one was running
    assert not pool.cancelled


def test_stopping_kills_what_runs_and_says_so() -> None:
    control, pool = RunControl(), FakePool()

    def twice(count: int) -> None:
        if count == 2:
            control.interrupt()
            control.interrupt()

    stored = _run(pool, Watcher(twice), control)
    assert [a.status for a in stored] == [JobStatus.PASS, JobStatus.PASS, JobStatus.KILLED]
    assert pool.cancelled


def test_a_store_that_fails_ends_everything() -> None:
    pool = FakePool()

    def fail(_attempt: Attempt) -> None:
        raise InfrastructureError("disk full")

    handlers = SchedulerCallbacks(_job, fail, lambda item: _job(item).attempt(JobStatus.SKIPPED))
    with pytest.raises(InfrastructureError, match="disk full"):
        Scheduler(pool, handlers, Watcher(), RunControl()).run(ITEMS)
    assert pool.closed


def test_a_budget_takes_what_fits_and_names_what_it_leaves_out() -> None:
    now = [0.0]
    durations = {item.id: 10.0 for item in ITEMS} | {ITEMS[3].id: 35.0, ITEMS[5].id: 2.0}
    budget = TimeBudget(40.0, lambda item: durations[item.id], clock=lambda: now[0])

    def pass_time(_count: int) -> None:
        now[0] += 10.0

    stored = _run(FakePool(slots=1), Watcher(pass_time), budget=budget)
    by_item = {a.item_id: a for a in stored}
    assert len(by_item) == len(ITEMS)
    ran = [item.seed for item in ITEMS if by_item[item.id].status is JobStatus.PASS]
    assert ran == [0, 1, 2]
    left = [by_item[item.id] for item in ITEMS if item.seed > 2]
    assert {(a.status, a.skip_cause) for a in left} == {(JobStatus.SKIPPED, SkipCause.BUDGET)}


def test_a_budget_never_goes_by_the_wall_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: 4e9)
    budget = TimeBudget(60.0, lambda item: None)
    monkeypatch.setattr("time.time", lambda: 9e9)
    assert budget.affords(ITEMS[0])


def test_ctrl_c_drains_then_stops_and_sigterm_stops_at_once() -> None:
    control, notes = RunControl(), []
    with interruptible(control, notes.append):
        os.kill(os.getpid(), signal.SIGINT)
        assert (control.drain, control.stop) == (True, False)
        os.kill(os.getpid(), signal.SIGINT)
        assert (control.drain, control.stop) == (True, True)
    other = RunControl()
    with interruptible(other, notes.append):
        os.kill(os.getpid(), signal.SIGTERM)
    assert (other.drain, other.stop) == (True, True)
    assert len(notes) == 3


def test_a_mistake_of_ours_in_one_job_does_not_end_the_night(tmp_path: Path) -> None:
    def broken(_job: JobSpec, _root: Path, _cancelled: Callable[[], bool]) -> Attempt:
        raise ZeroDivisionError("oops")

    pool = LocalPool(tmp_path, 1, broken)
    pool.submit(_job(ITEMS[0]))
    attempt = pool.next(10)
    pool.close()
    assert attempt is not None
    assert attempt.status is JobStatus.ERROR
    assert "ZeroDivisionError: oops" in attempt.reason


def _seen(sequence: int, state: JobStatus = JobStatus.PASS, revision: str = "same") -> PastAttempt:
    return PastAttempt(sequence, state, revision)


def test_most_valuable_first_failed_then_changed_then_longest_unseen() -> None:
    items = tuple(
        PlannedJob(
            "quick", "small", n, "rtl", ordinal=n, areas=("rtl/mem",) if n == 3 else ("docs",)
        )
        for n in range(6)
    )
    record = {
        items[0].id: [_seen(9)],
        items[1].id: [_seen(7)],
        items[2].id: [_seen(9), _seen(8, JobStatus.FAIL)],
        items[3].id: [_seen(9, revision="old")],
        items[4].id: [_seen(9), _seen(2, JobStatus.FAIL)],  # too long ago
    }
    changed = {"same": frozenset[str](), "old": frozenset({"rtl/mem/npu_mem_ctrl.sv"})}
    ordered = by_priority(items, record, changed.__getitem__, sequence=10)
    assert [item.seed for item in ordered] == [2, 5, 3, 1, 0, 4]


def test_without_git_everything_counts_as_changed() -> None:
    record = {ITEMS[1].id: [_seen(1)], ITEMS[0].id: [_seen(2)]}
    ordered = by_priority(ITEMS[:2], record, lambda revision: None, sequence=10)
    assert [item.seed for item in ordered] == [1, 0]


def test_time_left_is_what_jobs_are_expected_to_take(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("regress.nightly.display.time.monotonic", lambda: now[0])
    usual = {ITEMS[0].id: 30.0, ITEMS[1].id: 100.0, ITEMS[2].id: 7000.0}
    display = PlanDisplay(
        Console(file=io.StringIO()), "t", ITEMS[:4], 2, lambda item: usual.get(item.id)
    )
    assert display.left() == ""
    display.started(ITEMS[0])
    display.done(ITEMS[0], replace(_job(ITEMS[0]).attempt(JobStatus.PASS), seconds=60.0))
    assert display.left() == "3:53:20 left"  # twice as slow; no slot does the longest in half
    usual[ITEMS[2].id] = 70.0
    display = PlanDisplay(
        Console(file=io.StringIO()), "t", ITEMS[:4], 2, lambda item: usual.get(item.id)
    )
    display.started(ITEMS[0])
    display.done(ITEMS[0], replace(_job(ITEMS[0]).attempt(JobStatus.PASS), seconds=60.0))
    assert display.left() == "3:20 left"  # (200 + 140 + 60) / 2
    display.started(ITEMS[1])
    now[0] = 40.0 + now[0]
    assert display.left() == "3:00 left"
    for now[0] in (400.0, 500.0):  # longer than expected: does not rise
        assert display.left() == "2:20 left"
    display.started(ITEMS[2])
    display.started(ITEMS[3])
    now[0] = 5000.0
    assert display.left() == "longer than expected"


def test_time_left_without_any_record_is_the_mean_of_this_run() -> None:
    display = PlanDisplay(Console(file=io.StringIO()), "t", ITEMS[:4], 1, lambda item: None)
    display.done(ITEMS[0], replace(_job(ITEMS[0]).attempt(JobStatus.PASS), seconds=60.0))
    assert display.left() == "3:00 left"
