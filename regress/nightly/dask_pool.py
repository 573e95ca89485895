# SPDX-License-Identifier: Apache-2.0
"""Jobs on the workers of a dask scheduler: the pool of several machines.

A worker that dies has its jobs run elsewhere; capsules travel by hash, once to each machine.
Decides nothing about what runs, and stores nothing but the files that come back.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import queue
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from distributed import Client, Event, get_worker
from distributed.scheduler import KilledWorker

from driver.capture.store import DOCUMENT_FILE, TENSOR_FILE
from driver.errors import InfrastructureError
from regress.nightly import remote
from regress.nightly.job import JobSpec, collected
from regress.nightly.pool import guarded
from regress.nightly.prepare import PrepareResult, PrepareStep
from regress.nightly.remote import (
    JOB_REPLY,
    JOB_REQUEST,
    CapsuleUpload,
    JobReply,
    JobRequest,
    ReplyWithFiles,
    WorkerContext,
)
from regress.results.model import Attempt, JobStatus

_event: Any = Event  # untyped in dask

log = logging.getLogger(__name__)

_CONNECT_S = 30
_NO_WORKER_S = 300.0
"""So long without any worker is a broken cluster."""
_STEP_S = 3600
_PART_BYTES = 16 << 20
_STOP_POLL_S = 1.0


@dataclass(frozen=True)
class RemoteSettings:
    """What the jobs of a plan have in common when they travel."""

    sources: str | None
    """Digest that every worker must agree with."""
    losses: int
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
    """A job that somebody has."""

    job: JobSpec
    future: Any
    allowed: frozenset[str]
    """Workers that may run it; empty for any."""


class DaskPool:
    """The workers behind one scheduler."""

    def __init__(
        self, address: str, root: Path, lending: RemoteSettings, security: Any = None
    ) -> None:
        """`security` is dask's. InfrastructureError when nobody answers there, when it does not
        take our certificate, or when no worker comes."""
        self._root = root
        self._lending = lending
        try:
            connect: Any = Client  # untyped in dask
            options = {"security": security, "timeout": _CONNECT_S, "set_as_default": False}
            self._client = connect(address, **options)
            self._client.wait_for_workers(1, timeout=_CONNECT_S)
        except (TimeoutError, OSError, ValueError, RuntimeError, TypeError) as error:
            raise InfrastructureError(f"no dask workers at {address}: {error}") from error
        self._stop = f"stop-{uuid.uuid4().hex}"
        self._event = _event(self._stop, client=self._client)
        self._jobs: dict[str, _SubmittedJob] = {}
        """By the key of its future."""
        self._unfit: set[str] = set()
        """Workers that can take no order of this plan."""
        self._losses: Counter[str] = Counter()
        self._supplied: Counter[str] = Counter()
        self._sent: set[tuple[str, str]] = set()
        """Machine and hash of every capsule that was sent."""
        self._done: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._last_worker = time.monotonic()

    @property
    def slots(self) -> int:
        """Threads of all fit workers there are now."""
        return sum(worker["nthreads"] for worker in self._workers().values())

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
                sent.future.result(timeout=_CONNECT_S)
        self._client.close()

    def build(self, step: PrepareStep, config_file: Path) -> tuple[PrepareResult, bool]:
        """Do a step on one worker of every machine; the first that fails, or the last."""
        text = config_file.read_text(encoding="utf-8")
        machines = {worker["host"]: address for address, worker in self._workers().items()}
        futures = [
            self._client.submit(
                remote.run_step,
                step.kind,
                step.what,
                step.how,
                text,
                workers=[address],
                pure=False,
            )
            for address in machines.values()
        ]
        answers = [remote.step_result(future.result(timeout=_STEP_S)) for future in futures]
        cached = all(was for _, was in answers)
        worst = min((prepared for prepared, _ in answers), key=lambda prepared: prepared.ok)
        return worst, cached

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
            sources=self._lending.sources,
        )
        text = JOB_REQUEST.dump_json(order).decode()
        where: dict[str, Any] = {}
        if worker is not None:
            where = {"workers": [worker], "allow_other_workers": not self._unfit}
        elif self._unfit:
            where = {"workers": list(self._workers())}
        future = self._client.submit(
            _work, text, self._stop, str(self._lending.cache), pure=False, **where
        )
        allowed = frozenset(where.get("workers", ())) if self._unfit else frozenset[str]()
        self._jobs[future.key] = _SubmittedJob(job, future, allowed)
        future.add_done_callback(lambda done: self._done.put(done.key))

    def _taken(self, job: JobSpec, future: Any) -> Attempt | None:
        """The attempt that a worker gave back; None when the job had to be given away again."""
        try:
            text, files = future.result(timeout=_CONNECT_S)
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
        log.warning("worker %s is given no more jobs: %s", reply.worker, reply.unfit)
        self._unfit.add(reply.worker)
        if not self._workers():
            return job.attempt(JobStatus.KILLED, f"no worker can take it: {reply.unfit}")
        self._send(job)
        return None

    def _kept(self, job: JobSpec, reply: JobReply, files: dict[str, bytes]) -> Attempt:
        assert reply.attempt is not None
        for name, data in files.items():
            path = job.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return collected(reply.attempt, job.folder, self._root)

    def _lost(self, job: JobSpec, why: str) -> Attempt | None:
        self._losses[job.item.id] += 1
        if self._event.is_set() or self._losses[job.item.id] > self._lending.losses:
            return job.attempt(JobStatus.KILLED, f"its worker was lost: {why}")
        self._send(job)
        return None

    # ------------------------------------------------------------------ capsules
    def _supply(self, job: JobSpec, reply: JobReply) -> Attempt | None:
        """Send the capsules a worker asked for, then the job again."""
        again = self._supplied[job.item.id]
        self._supplied[job.item.id] += 1
        if again > self._lending.losses:
            return job.attempt(JobStatus.ERROR, f"{reply.worker} keeps no capsules")
        folders = {key: job.spec.capsules[name] for name, key in job.capsules}
        try:
            for key in reply.needs:
                place = (self._workers()[reply.worker]["host"], key)
                if again or place not in self._sent:
                    self._upload(key, folders[key], reply.worker)
                    self._sent.add(place)
        except (KilledWorker, KeyError, OSError, asyncio.CancelledError) as error:
            return self._lost(job, f"{type(error).__name__} while capsules were sent")
        self._send(job, reply.worker)
        return None

    def _upload(self, key: str, folder: Path, worker: str) -> None:
        """Part after part, so that no more than one is in anybody's memory."""
        upload = CapsuleUpload(str(self._lending.cache), key)
        for name, offset, data in _parts(folder):
            self._at(worker, remote.put_part, upload, name, offset, data)
        self._at(worker, remote.finish_upload, upload)

    def _at(self, worker: str, function: Any, *arguments: Any) -> None:
        """Call a function in one worker; OSError when that worker has gone."""
        future = self._client.submit(function, *arguments, workers=[worker], pure=False)
        while not future.done():
            if worker not in self._workers():
                future.cancel()
                raise ConnectionError(f"worker {worker} has gone")
            with contextlib.suppress(asyncio.TimeoutError):
                future.result(timeout=1)
        future.result()

    # ------------------------------------------------------------------ workers
    def _workers(self) -> dict[str, Any]:
        """The fit ones there are now."""
        found = self._client.scheduler_info(n_workers=-1)["workers"]
        return {address: info for address, info in found.items() if address not in self._unfit}

    def _check_workers(self) -> None:
        """Give away again what only lost workers may run. InfrastructureError when there has been
        no worker for long."""
        now, present = time.monotonic(), self._workers().keys()
        if present:
            self._last_worker = now
        elif now - self._last_worker > _NO_WORKER_S:
            raise InfrastructureError(f"no dask worker for {_NO_WORKER_S:.0f} s")
        for key, sent in list(self._jobs.items()):
            if present and sent.allowed and not sent.allowed & present:
                del self._jobs[key]
                sent.future.cancel()
                self._send(sent.job)


def _parts(folder: Path) -> Iterator[tuple[str, int, bytes]]:
    """Name, offset and bytes of each part of a capsule's files; an empty file is one part."""
    for name in (DOCUMENT_FILE, TENSOR_FILE):
        with (folder / name).open("rb") as file:
            offset = 0
            while (data := file.read(_PART_BYTES)) or not offset:
                yield name, offset, data
                offset += len(data)
                if not data:
                    break
