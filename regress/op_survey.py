# SPDX-License-Identifier: Apache-2.0
"""`npu-cosim op-survey`: torch's own op samples on the cmodel, and docs/ops.md.

Owns the worker processes (`python -m tb.op_survey`). The page is op_survey_page's, the ratchet
op_survey_baseline's. Torch-free.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO

from rich.console import Console

from driver.config import load_config
from driver.errors import InfrastructureError, InputError
from driver.files import write_text
from driver.op_survey import DTYPES, Listing, OpTypeRow, SampleCounts, SurveyTask, TaskAnswer
from regress import op_survey_baseline as baseline
from regress.console import print_line
from regress.op_survey_page import page, totals
from regress.paths import CONFIG_FILE, OUT, ROOT
from regress.process import bound, environment, terminable
from regress.progress import ProgressBar

PAGE = ROOT / "docs" / "ops.md"
SAMPLES, SEED = 10, 1
"""Those of the page and of the baseline."""
_CONFIG = "small"
_SAMPLE_CPU_S = 20.0
_TASK_S = 1800.0
"""Wall clock per op and worker: only an endless loop outside Python takes so long."""
_SHOWN = 40


@dataclass(frozen=True)
class OpSurveyRequest:
    """What to run. No `ops`: all. The defaults are what the page and the baseline hold."""

    ops: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = DTYPES
    samples: int = SAMPLES
    seed: int = SEED
    jobs: int = 2
    record: bool = False
    """Record also what cannot be compared with the baseline."""

    @property
    def recorded(self) -> bool:
        """Whether the outcome belongs into the page and the baseline."""
        return self == OpSurveyRequest(jobs=self.jobs, record=self.record)


@dataclass
class Measured:
    """What the workers found."""

    torch: str
    rows: list[OpTypeRow] = field(default_factory=list)


def run_op_survey(console: Console, request: OpSurveyRequest) -> int:
    """Run, print the totals, write page and baseline if everything was run.

    1 when a sample is wrong, ended the worker or took too long, or when one that passed does not.
    """
    for dtype in request.dtypes:
        if dtype not in DTYPES:
            raise InputError("command line", "dtype", dtype, f"one of {', '.join(DTYPES)}")
    load_config(CONFIG_FILE, _CONFIG)
    former = baseline.recorded()
    with terminable():
        found = measure(request, ProgressBar(console, "op-survey"))
    say = partial(print_line, console)
    for line in totals(found.rows):
        say(line)
    lost = baseline.lost(former, found.torch, request.samples, request.seed, found.rows)
    why = baseline.not_compared(former, found.torch, request.samples, request.seed)
    if why:
        say(why)
    elif request.recorded:
        lost += baseline.gone(former, found.rows)
    failed = [f"{row.op} {row.dtype}: {text}" for row in found.rows for text in row.failures]
    for title, lines in (("failures", failed), ("passed before, and do not now", lost)):
        for line in ([f"{title}: {len(lines)}"] if lines else []) + lines[:_SHOWN]:
            say(line)
    bad = sum((row.count for row in found.rows), SampleCounts()).failed
    if request.recorded:
        write_text(OUT / "op-survey" / "ops.md", page(found.torch, request.samples, found.rows))
        if why and not request.record:
            say("not recorded: --record takes this as the new baseline")
        elif not (lost or bad):
            write_text(PAGE, page(found.torch, request.samples, found.rows))
            baseline.record(found.torch, request.samples, request.seed, found.rows)
            say(f"wrote {PAGE.relative_to(ROOT)} and {baseline.FILE.relative_to(ROOT)}")
    return 1 if lost or bad else 0


def measure(request: OpSurveyRequest, progress: ProgressBar) -> Measured:
    """Judge the samples of the ops in worker processes. InputError for an op that torch has not."""
    log = OUT / "op-survey" / "worker.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_bytes(b"")
    first = _Worker(log)
    try:
        listing = first.listing
        for op in request.ops:
            if op not in listing.ops:
                raise InputError("command line", "op", op, "the full name of an op of op_db")
        tasks = deque(
            SurveyTask(
                op=op,
                dtypes=request.dtypes,
                samples=request.samples,
                seed=request.seed,
                limit_s=_SAMPLE_CPU_S,
            )
            for op in request.ops or listing.ops
        )
        with progress:
            progress.plan(len(tasks))
            rows = _Pool(tasks, progress, log).run(first, request.jobs)
    finally:
        first.end()
    order = {op: number for number, op in enumerate(listing.ops)}
    rows.sort(key=lambda row: (order[row.op], DTYPES.index(row.dtype)))
    return Measured(listing.torch, rows)


class _Worker:
    """One process of `tb.op_survey`."""

    def __init__(self, log: Path) -> None:
        with log.open("ab") as stderr:
            self._child = subprocess.Popen(
                bound([sys.executable, "-m", "tb.op_survey", str(CONFIG_FILE), _CONFIG]),
                cwd=ROOT,
                env=environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                start_new_session=True,
            )
        line = self._stdout.readline()
        if not line:
            status = self.end()
            raise InfrastructureError(f"tb.op_survey ended with status {status}: see {log}")
        self.listing = Listing.model_validate_json(line)

    @property
    def _stdout(self) -> IO[str]:
        assert self._child.stdout is not None
        return self._child.stdout

    def ask(self, task: SurveyTask) -> TaskAnswer | None:
        """The rows of a task; None when the process ended over it, or ran out of time."""
        assert self._child.stdin is not None
        clock = threading.Timer(_TASK_S, self._kill)
        clock.start()
        try:
            self._child.stdin.write(task.model_dump_json() + "\n")
            self._child.stdin.flush()
            line = self._stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            clock.cancel()
        return TaskAnswer.model_validate_json(line) if line.endswith("\n") else None

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._child.pid, signal.SIGKILL)

    def end(self) -> int:
        """End the process, whatever it does."""
        self._kill()
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        return self._child.wait()


class _Pool:
    """Workers in threads that take tasks from one queue."""

    def __init__(self, tasks: deque[SurveyTask], progress: ProgressBar, log: Path) -> None:
        self._tasks, self._progress, self._log = tasks, progress, log
        self._rows: list[OpTypeRow] = []
        self._errors: list[BaseException] = []
        self._lock = threading.Lock()
        self._stop = threading.Event()

    def run(self, first: _Worker, jobs: int) -> list[OpTypeRow]:
        """The rows of all tasks, in any order."""
        count = min(max(jobs, 1), max(len(self._tasks), 1))
        threads = [
            threading.Thread(target=self._work, args=(first if number == 0 else None,))
            for number in range(count)
        ]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                while thread.is_alive():
                    thread.join(0.2)
        finally:
            self._stop.set()
        for error in self._errors:
            raise error
        return self._rows

    def _work(self, given: _Worker | None) -> None:
        try:
            self._serve(given or _Worker(self._log))
        except BaseException as error:  # a thread has no caller: `run` raises it
            self._errors.append(error)
            self._stop.set()

    def _serve(self, worker: _Worker) -> None:
        try:
            while not self._stop.is_set():
                try:
                    task = self._tasks.popleft()
                except IndexError:
                    return
                reply = worker.ask(task)
                if reply is None:
                    worker.end()
                    worker = _Worker(self._log)
                self._take(task, reply)
        finally:
            worker.end()

    def _take(self, task: SurveyTask, reply: TaskAnswer | None) -> None:
        """Keep the rows. A task that ended its worker comes again, type by type, to say which."""
        with self._lock:
            if reply is not None:
                self._rows += reply.rows
                self._progress.done()
            elif len(task.dtypes) > 1:
                self._tasks.extendleft(
                    task.model_copy(update={"dtypes": (dtype,)}) for dtype in task.dtypes
                )
            else:
                self._rows.append(_ended(task))


def _ended(task: SurveyTask) -> OpTypeRow:
    (dtype,) = task.dtypes
    return OpTypeRow(
        op=task.op,
        dtype=dtype,
        count=SampleCounts(crash=1),
        core=SampleCounts(),
        refusals={},
        core_refusals={},
        failures=("crash: the worker process ended",),
    )
