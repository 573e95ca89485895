# SPDX-License-Identifier: Apache-2.0
"""One job: an item of the plan run once, in a folder of its own, to exactly one status.

Whatever happens to the test — crash, hang, a full disk — the answer is an attempt that says so;
only a mistake of ours escapes as an exception. Stores nothing.
"""

from __future__ import annotations

import hashlib
import os
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from driver.errors import NpuError
from driver.results import OpRow, RunResult, RunSpec
from regress.nightly.plan import REPLAY
from regress.results.model import (
    Artefact,
    Attempt,
    JobStatus,
    PlannedJob,
    SkipCause,
    artefact_path,
    digest,
)
from regress.run import RUNNER, RunOutcome, run_in_thread

_HASHED_CHUNK = 1 << 20
_REASON_CHARACTERS = 400
_FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
_NO_OUTCOME = {"wall_seconds", "reproduce", "message", "notes"}
_TIMEOUTS = ("SimulatorTimeout",)
"""Errors of a run that are a limit of its own being reached."""


@dataclass(frozen=True)
class JobSpec:
    """Everything that running an item takes."""

    plan_id: str
    item: PlannedJob
    number: int
    """Of the attempt."""
    spec: RunSpec
    """What the bench is asked; `out` is a folder of the job's own, made when it starts."""
    inputs_hash: str
    runner: tuple[str, ...] = RUNNER
    capsules: tuple[tuple[str, str], ...] = ()
    """Name in the spec → content hash."""

    @property
    def folder(self) -> Path:
        """Where its files go."""
        return self.spec.out

    def attempt(self, status: JobStatus, reason: str = "", **fields: Any) -> Attempt:
        """The attempt of this job."""
        return Attempt(
            plan_id=self.plan_id,
            item_id=self.item.id,
            number=self.number,
            status=status,
            reason=brief(reason),
            started_utc=utc_now(),
            inputs_hash=self.inputs_hash,
            **fields,
        )


def capsule_names(item: PlannedJob, wanted: tuple[str, ...]) -> dict[str, str]:
    """Name in the spec → workload, for the capsules that an item needs; `wanted` are its test's."""
    if item.test == REPLAY and item.workload is not None:
        return {"capsule": item.workload}
    return {name: name for name in wanted}


class _RunStopped(Exception):
    """The run was ended from here. Args: status, reason."""


class _RunWatcher:
    """Follows a run, and ends it when it is over its cycles or no longer wanted."""

    def __init__(self, limit: int | None, cancelled: Callable[[], bool]) -> None:
        self._limit = limit
        self._cancelled = cancelled
        self.cycles = 0
        self.ops = 0
        self.failed = 0

    def __enter__(self) -> _RunWatcher:
        return self

    def __exit__(self, *error: Any) -> None:
        pass

    def plan(self, ops: int) -> None:
        """Of no interest: what counts is done."""

    def note(self, text: str) -> None:
        """The log has it."""

    def op(self, row: OpRow) -> None:
        """Count."""
        self.ops += 1
        self.failed += row.status == "fail"
        self.cycles += row.cycles or 0
        if self._limit is not None and self.cycles > self._limit:
            reason = f"{self.cycles} cycles after {self.ops} ops, limit {self._limit}"
            raise _RunStopped(JobStatus.TIMEOUT, reason)
        self.tick()

    def tick(self) -> None:
        """End the run when it is not wanted any more."""
        if self._cancelled():
            raise _RunStopped(JobStatus.KILLED, "stopped on request")


def run_job(job: JobSpec, cancelled: Callable[[], bool] = lambda: False) -> Attempt:
    """Run a job to its end; its files stay in its folder, and are not in the attempt yet."""
    watch = _RunWatcher(job.item.max_cycles, cancelled)
    started_utc, start = utc_now(), time.monotonic()
    try:
        job.folder.mkdir(parents=True, exist_ok=True)
        outcome = run_in_thread(job.spec, watch, job.runner)
        attempt = _judged(job, outcome)
    except _RunStopped as stop:
        status, reason = stop.args
        attempt = job.attempt(status, reason, ops=watch.ops, failed_ops=watch.failed)
    except NpuError as error:
        attempt = job.attempt(JobStatus.ERROR, str(error), ops=watch.ops, failed_ops=watch.failed)
    except OSError as error:
        reason = f"{error.filename or job.folder}: {error.strerror}"
        attempt = job.attempt(JobStatus.ERROR, reason, ops=watch.ops, failed_ops=watch.failed)
    seconds = round(time.monotonic() - start, 3)
    worker = f"{socket.gethostname()}:{os.getpid()}"
    return replace(attempt, started_utc=started_utc, seconds=seconds, worker=worker)


def _judged(job: JobSpec, outcome: RunOutcome) -> Attempt:
    """The attempt of a run that ended by itself, or at its time limit."""
    result = outcome.result
    status, reason = _status(outcome)
    return job.attempt(
        status,
        reason,
        cpu_seconds=None if outcome.end is None else outcome.end.cpu_seconds,
        cycles=result.cycles,
        ops=len(result.ops),
        failed_ops=sum(row.status == "fail" for row in result.ops),
        result_hash=result_hash(result) if status in (JobStatus.PASS, JobStatus.FAIL) else None,
    )


def _status(outcome: RunOutcome) -> tuple[JobStatus, str]:
    result, ended, end = outcome.result, outcome.ended, outcome.end
    lines = (result.message or "").splitlines()
    message = "; ".join(dict.fromkeys([*lines[:1], *lines[-1:]]))  # what happened; the log's last
    if ended.timed_out or (end is not None and end.error in _TIMEOUTS):
        return JobStatus.TIMEOUT, message
    if result.status == "pass":
        return JobStatus.PASS, ""
    if result.status == "fail":
        return JobStatus.FAIL, _first_failure(result)
    if -ended.status in _FROM_OUTSIDE:
        return JobStatus.KILLED, message
    return JobStatus.ERROR, message


def _first_failure(result: RunResult) -> str:
    failed = [row for row in result.ops if row.status == "fail"]
    if not failed:
        return result.message or ""
    row = failed[0]
    detail = "" if row.failure is None else f": {row.failure.detail}"
    return f"op {row.index} {row.op} {row.module}: blame {row.blame}{detail}"


def result_hash(result: RunResult) -> str:
    """Equal for equal outcomes: without times, paths and texts for the reader."""
    plain = result.model_dump(mode="json", exclude=_NO_OUTCOME)
    for row in plain["ops"]:
        if row["failure"] is not None:
            del row["failure"]["detail"]  # may name a folder
    return digest(plain)


def collected(attempt: Attempt, folder: Path, root: Path) -> Attempt:
    """The attempt with its files: hashed and on disk when this returns. OSError when they are not.

    `root` is the folder of the store.
    """
    relative = str(folder.relative_to(root))
    found = []
    if folder.is_dir():
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not path.name.startswith("."):
                name = path.relative_to(folder).as_posix()
                sha256, size = _durable(path)
                found.append(Artefact(name, artefact_path(relative, name), sha256, size))
        _durable_names(folder, root)
    return replace(attempt, folder=relative, artefacts=tuple(found))


def perform(job: JobSpec, root: Path, cancelled: Callable[[], bool] = lambda: False) -> Attempt:
    """Run a job and collect its files: an attempt that can be stored."""
    attempt = run_job(job, cancelled)
    try:
        return collected(attempt, job.folder, root)
    except OSError as error:  # what the run found is true, but its evidence is not safe
        reason = f"{error.filename or job.folder}: {error.strerror}; the run: {attempt.status}"
        return replace(attempt, status=JobStatus.ERROR, reason=brief(reason), result_hash=None)


def _durable(path: Path) -> tuple[str, int]:
    """SHA-256 and size of a file whose bytes are now on disk."""
    digest_, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        os.fsync(file.fileno())
        while chunk := file.read(_HASHED_CHUNK):
            digest_.update(chunk)
            size += len(chunk)
    return digest_.hexdigest(), size


def _durable_names(folder: Path, root: Path) -> None:
    """Make the names of a folder, and of those above it up to the store's, durable."""
    folders = [folder, *(path for path in folder.rglob("*") if path.is_dir())]
    while folder != root:
        folder = folder.parent
        folders.append(folder)
    for path in folders:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def skipped(plan_id: str, item: PlannedJob, number: int, cause: SkipCause, reason: str) -> Attempt:
    """The attempt of an item that was not started."""
    return Attempt(
        plan_id=plan_id,
        item_id=item.id,
        number=number,
        status=JobStatus.SKIPPED,
        reason=brief(reason),
        skip_cause=cause,
        started_utc=utc_now(),
    )


def utc_now() -> str:
    """For readers only: nothing is ordered or measured by it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def brief(text: str) -> str:
    """One line of bounded length."""
    line = " ".join(text.split())
    return line if len(line) <= _REASON_CHARACTERS else line[: _REASON_CHARACTERS - 1] + "…"
