# SPDX-License-Identifier: Apache-2.0
"""Where jobs run: the verbs of a pool, and the pool of this machine's processes.

A pool runs what it is given, in any order; it decides nothing and stores nothing.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

from regress.nightly.job import JobSpec, perform
from regress.results.model import Attempt, JobStatus

log = logging.getLogger(__name__)

Perform = Callable[[JobSpec, Path, Callable[[], bool]], Attempt]


class Pool(Protocol):
    """Runs jobs; each comes back exactly once, as an attempt with its files collected."""

    @property
    def slots(self) -> int:
        """How many jobs it wants to have at once; may change."""
        ...

    def submit(self, job: JobSpec) -> None:
        """Take a job."""
        ...

    def next(self, timeout_s: float) -> Attempt | None:
        """The next attempt, or None after so long without one."""
        ...

    def cancel(self) -> None:
        """End what runs: every job still comes back, as killed unless it had ended."""
        ...

    def close(self) -> None:
        """Cancel and wait for the end of everything."""
        ...


class LocalPool:
    """Processes of this machine: a thread waits for each, and does nothing else."""

    def __init__(self, root: Path, jobs: int, perform: Perform = perform) -> None:
        """`root` is the folder of the store."""
        self._root = root
        self._perform = perform
        self._slots = jobs
        self._cancelled = threading.Event()
        self._finished: queue.SimpleQueue[Attempt] = queue.SimpleQueue()
        self._threads = ThreadPoolExecutor(max_workers=jobs, thread_name_prefix="job")

    @property
    def slots(self) -> int:
        """Jobs at once."""
        return self._slots

    def submit(self, job: JobSpec) -> None:
        """Start it when a slot is free."""
        self._threads.submit(self._run, job)

    def next(self, timeout_s: float) -> Attempt | None:
        """The next that has ended."""
        try:
            return self._finished.get(timeout=timeout_s)
        except queue.Empty:
            return None

    def cancel(self) -> None:
        """End the process group of every job."""
        self._cancelled.set()

    def close(self) -> None:
        """Nothing is left running."""
        self.cancel()
        self._threads.shutdown(wait=True)

    def _run(self, job: JobSpec) -> None:
        self._finished.put(guarded(job, lambda: self._performed(job)))

    def _performed(self, job: JobSpec) -> Attempt:
        if self._cancelled.is_set():
            return job.attempt(JobStatus.KILLED, "stopped before it started")
        return self._perform(job, self._root, self._cancelled.is_set)


def guarded(job: JobSpec, run: Callable[[], Attempt]) -> Attempt:
    """The attempt that `run` gives. A mistake of ours in one job must not end the night: it
    becomes this job's error, with its traceback in the log."""
    try:
        return run()
    except Exception as error:
        log.exception("job %s", job.item.label)
        return job.attempt(JobStatus.ERROR, f"internal error: {type(error).__name__}: {error}")
