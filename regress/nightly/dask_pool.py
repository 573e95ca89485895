# SPDX-License-Identifier: Apache-2.0
"""Jobs on the workers of a dask scheduler: the pool of several machines.

A worker that dies has its jobs run elsewhere; capsules travel by hash, once to each machine.
Decides nothing about what runs, and stores nothing but the files that come back.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import shlex
import time
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from distributed import Event, get_worker
from distributed.scheduler import KilledWorker

from driver.errors import InfrastructureError
from driver.results import RESULT_FILE, SPEC_FILE, RunResult, RunSpec, read_json, write_json
from regress.folder import stays_inside
from regress.nightly import remote
from regress.nightly.dask_workers import CONNECT_S, DaskWorkers
from regress.nightly.job import JobSpec, collected
from regress.nightly.pool import guarded
from regress.nightly.prepare import PrepareResult, PrepareStep
from regress.nightly.remote import (
    JOB_REPLY,
    JOB_REQUEST,
    JobReply,
    JobRequest,
    ReplyWithFiles,
    WorkerContext,
)
from regress.results.model import Attempt, JobStatus
from regress.run_report.junit import JUNIT_FILE, write_junit

_event: Any = Event  # untyped in dask

_NO_WORKER_S = 300.0
"""So long without any worker is a broken cluster."""
_STOP_POLL_S = 1.0


@dataclass(frozen=True)
class RemoteSettings:
    """What the jobs of a plan have in common when they travel."""

    sources: str | None
    """Digest that every worker must agree with."""
    worker_retries: int
    """How often a job is given away again when its worker is lost."""
    cache: Path
    """Where workers keep capsules."""


class _StopFlag:
    """Asks the scheduler now and then whether the plan was stopped."""

    def __init__(self, name: str) -> None:
        self._event = _event(name)
        self._next = 0.0

    def __call__(self) -> bool:
        now = time.monotonic()
        if now < self._next:
            return False
        self._next = now + _STOP_POLL_S
        with contextlib.suppress(OSError, asyncio.TimeoutError):  # no scheduler: go on, it decides
            return bool(self._event.is_set())
        return False


def _work(text: str, stop: str, cache: str) -> ReplyWithFiles:
    """In a worker."""
    place = WorkerContext(get_worker().address, Path(cache), _StopFlag(stop))
    return remote.run_request(text, place)


@dataclass(frozen=True)
class _SubmittedJob:
    """A job that a worker has."""

    job: JobSpec
    future: Any
    allowed: frozenset[str]
    """Workers that may run it; empty for any."""


class DaskPool:
    """The workers behind one scheduler."""

    def __init__(
        self, address: str, root: Path, settings: RemoteSettings, security: Any = None
    ) -> None:
        """`root`: folder of the store. `security` and InfrastructureError as DaskWorkers."""
        self._root = root
        self._settings = settings
        self._workers = DaskWorkers(address, settings.cache, security)
        self._client = self._workers.client
        self._stop = f"stop-{uuid.uuid4().hex}"
        self._event = _event(self._stop, client=self._client)
        self._jobs: dict[str, _SubmittedJob] = {}
        """By the key of its future."""
        self._losses: Counter[str] = Counter()
        self._supplied: Counter[str] = Counter()
        self._done: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._last_worker = time.monotonic()

    @property
    def slots(self) -> int:
        """Threads of all fit workers there are now."""
        return sum(worker["nthreads"] for worker in self._workers.present().values())

    def submit(self, job: JobSpec) -> None:
        """Give it to any worker."""
        self._send(job)

    def next(self, timeout_s: float) -> Attempt | None:
        """The next that has come back."""
        try:
            sent = self._jobs.pop(self._done.get(timeout=timeout_s), None)
        except queue.Empty:
            self._check_workers()
            return None
        return None if sent is None else self._taken(sent.job, sent.future)

    def cancel(self) -> None:
        """Every worker ends what it runs of this plan."""
        self._event.set()

    def close(self) -> None:
        """Nothing of this plan runs any more."""
        self.cancel()
        for sent in self._jobs.values():
            with contextlib.suppress(Exception):
                sent.future.result(timeout=CONNECT_S)
        self._client.close()

    def build(
        self, step: PrepareStep, config_file: Path, wanted: Callable[[], bool]
    ) -> tuple[PrepareResult, bool]:
        """Do a step on every machine, as long as it is wanted."""
        return self._workers.build(step, config_file, wanted)

    # ------------------------------------------------------------------ jobs
    def _send(self, job: JobSpec, worker: str | None = None) -> None:
        """`worker`: where the capsules are already."""
        order = JobRequest(
            plan_id=job.plan_id,
            item=job.item,
            number=job.number,
            spec=job.spec,
            inputs_hash=job.inputs_hash,
            runner=job.runner,
            config_text=job.spec.config_file.read_text(encoding="utf-8"),
            capsules=dict(job.capsules),
            sources=self._settings.sources,
        )
        text = JOB_REQUEST.dump_json(order).decode()
        where: dict[str, Any] = {}
        if worker is not None:
            where = {"workers": [worker], "allow_other_workers": not self._workers.restricted}
        elif self._workers.restricted:
            where = {"workers": list(self._workers.present())}
        future = self._client.submit(
            _work, text, self._stop, str(self._settings.cache), pure=False, **where
        )
        allowed = (
            frozenset(where.get("workers", ())) if self._workers.restricted else frozenset[str]()
        )
        self._jobs[future.key] = _SubmittedJob(job, future, allowed)
        future.add_done_callback(lambda done: self._done.put(done.key))

    def _taken(self, job: JobSpec, future: Any) -> Attempt | None:
        """The attempt that a worker gave back; None when the job had to be given away again."""
        try:
            text, files = future.result(timeout=CONNECT_S)
        except KilledWorker as error:
            return self._lost(job, str(error))
        except Exception as error:  # a mistake of ours, or no such function over there
            return job.attempt(JobStatus.ERROR, f"worker: {type(error).__name__}: {error}")
        reply = JOB_REPLY.validate_json(text)
        if reply.attempt is not None:
            return guarded(job, lambda: self._kept(job, reply, files))
        if reply.unfit:
            return self._refused(job, reply)
        return self._supply(job, reply)

    def _refused(self, job: JobSpec, reply: JobReply) -> Attempt | None:
        """That worker is given no more jobs; another takes this one."""
        self._workers.exclude(reply.worker, reply.unfit)
        if not self._workers.present():
            return job.attempt(JobStatus.KILLED, f"no worker can take it: {reply.unfit}")
        self._send(job)
        return None

    def _kept(self, job: JobSpec, reply: JobReply, files: dict[str, bytes]) -> Attempt:
        assert reply.attempt is not None
        for name, data in files.items():
            if not stays_inside(name):
                raise InfrastructureError(f"a worker names {name!r} as a file of its job")
            path = job.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        if SPEC_FILE in files:
            self._name_own_paths(job, RESULT_FILE in files)
        return collected(reply.attempt, job.folder, self._root)

    @staticmethod
    def _name_own_paths(job: JobSpec, has_result: bool) -> None:
        """The worker's spec and the line that repeats its run name paths that were only there."""
        there = read_json(job.folder / SPEC_FILE, RunSpec)
        write_json(job.folder / SPEC_FILE, job.spec)
        if not has_result:
            return
        result = read_json(job.folder / RESULT_FILE, RunResult)
        line = result.reproduce
        paths = {there.config_file: job.spec.config_file}
        paths |= {path: job.spec.capsules[name] for name, path in there.capsules.items()}
        for its, own in paths.items():
            line = line.replace(shlex.quote(str(its)), shlex.quote(str(own)))
        result = result.model_copy(update={"reproduce": line})
        write_json(job.folder / RESULT_FILE, result)
        write_junit(result, job.folder / JUNIT_FILE)

    def _lost(self, job: JobSpec, why: str) -> Attempt | None:
        self._losses[job.item.id] += 1
        if self._event.is_set() or self._losses[job.item.id] > self._settings.worker_retries:
            return job.attempt(JobStatus.KILLED, f"its worker was lost: {why}")
        self._send(job)
        return None

    def _supply(self, job: JobSpec, reply: JobReply) -> Attempt | None:
        """Send the capsules a worker asked for, then the job again."""
        again = self._supplied[job.item.id]
        self._supplied[job.item.id] += 1
        if again > self._settings.worker_retries:
            return job.attempt(JobStatus.ERROR, f"{reply.worker} keeps no capsules")
        folders = {key: job.spec.capsules[name] for name, key in job.capsules}
        wanted = {key: folders[key] for key in reply.needs}
        try:
            self._workers.upload(reply.worker, wanted, repeat=bool(again))
        except (KilledWorker, KeyError, OSError, asyncio.CancelledError) as error:
            return self._lost(job, f"{type(error).__name__} while capsules were sent")
        self._send(job, reply.worker)
        return None

    def _check_workers(self) -> None:
        """Give away again what only lost workers may run. InfrastructureError when there has been
        no worker for long."""
        now, present = time.monotonic(), self._workers.present().keys()
        if present:
            self._last_worker = now
        elif now - self._last_worker > _NO_WORKER_S:
            raise InfrastructureError(f"no dask worker for {_NO_WORKER_S:.0f} s")
        for key, sent in list(self._jobs.items()):
            if present and sent.allowed and not sent.allowed & present:
                del self._jobs[key]
                sent.future.cancel()
                self._send(sent.job)
