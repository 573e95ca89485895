# SPDX-License-Identifier: Apache-2.0
"""The records of a regression: what is planned, what was tried, what came of it.

Frozen values only. Knows no database, no process and no clock.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Literal

from driver.results import ArrayModel, Mode, Shard

_ID_CHARACTERS = 12


class JobStatus(StrEnum):
    """How an item of the plan ended; every item is in exactly one."""

    PASS = "pass"  # noqa: S105 (a verdict, not a password)
    """Every op was judged and right."""
    FAIL = "fail"
    """A verdict failed: the design, the model of it, or the lowering is wrong."""
    ERROR = "error"
    """No verdict: bad input, a crash of the simulator, a full disk."""
    TIMEOUT = "timeout"
    """Stopped at its limit of wall-clock time or cycles."""
    KILLED = "killed"
    """Stopped from outside: Ctrl-C twice, a worker that was lost."""
    SKIPPED = "skipped"
    """Not started, for the reason that stands beside it."""

    @property
    def executed(self) -> bool:
        """Whether the item ran to an end of its own: `--resume` leaves it alone."""
        return self not in (JobStatus.KILLED, JobStatus.SKIPPED)

    @property
    def red(self) -> bool:
        """Whether it makes the run fail. A skipped item is red by its cause."""
        return self not in (JobStatus.PASS, JobStatus.SKIPPED)


class SkipCause(StrEnum):
    """Why an item was not started."""

    DECLARED = "declared"
    """sim_config.yaml says so, and why."""
    BUDGET = "budget"
    """The time of `--budget` was used up."""
    PREPARATION = "preparation"
    """Its simulator did not build, or its capsule could not be recorded: red."""

    @property
    def red(self) -> bool:
        """Whether a run with such a skip has failed."""
        return self is SkipCause.PREPARATION


@dataclass(frozen=True, slots=True)
class PlannedJob:
    """One job: a test on one configuration with one seed, or one shard of it."""

    test: str
    config: str
    seed: int
    backend: Literal["rtl", "cmodel"]
    workload: str | None = None
    """The workload whose capsule the test `replay` is given; None for every other test."""
    mode: Mode | None = None
    """What the ops of a model work on; None for what the test does by itself."""
    array: ArrayModel = "rtl"
    """`behavioural`: a model in place of the matrix array and the multiply-add, for speed."""
    allow_cpu: bool = False
    """Ops that the NPU has not got run on the CPU, and are counted."""
    shard: Shard | None = None
    """Which part of the test's ops; None for all."""
    wall_s: float = 3600.0
    """Limit of wall-clock time."""
    max_cycles: int | None = None
    """Limit of simulated cycles, all ops together; None for none but that of each wait."""
    skip: str | None = None
    """Why it is never started, where sim_config.yaml says so."""
    areas: tuple[str, ...] = ()
    """Paths of the repository that this item is about: changed ones make it more valuable."""
    ordinal: int = 0
    """Position in the plan."""

    @property
    def id(self) -> str:
        """Names the same work on every night: limits and position are no part of it."""
        shard = None if self.shard is None else [self.shard.index, self.shard.count]
        how = [self.backend, self.mode, self.array, self.allow_cpu]
        what = [self.test, self.workload, self.config, self.seed, shard]
        return digest([what, how], _ID_CHARACTERS)

    @property
    def label(self) -> str:
        """As a reader knows it: `matmul[default] seed 1 shard 2/4`."""
        name = self.test if self.workload is None else f"{self.test}:{self.workload}"
        backend = "" if self.backend == "rtl" else f" {self.backend}"
        shard = "" if self.shard is None else f" shard {self.shard.index + 1}/{self.shard.count}"
        mode = f" {self.mode}" if self.mode else ""
        mode += "" if self.array == "rtl" else f" array {self.array}"
        mode += " allow-cpu" if self.allow_cpu else ""
        return f"{name}[{self.config}]{backend}{mode} seed {self.seed}{shard}"

    @property
    def series(self) -> str:
        """The label without seed and shard: what is the same work on other data."""
        return self.label.partition(" seed ")[0]


@dataclass(frozen=True, slots=True)
class Plan:
    """What was going to run, and of which sources. Committed before the first job starts."""

    id: str
    tier: str
    created_utc: str
    """ISO 8601, for readers: plans are ordered by `sequence`, whatever the clock did."""
    seed: int
    revision: str
    """Git commit; empty outside a repository."""
    dirty: bool
    """Whether there were changes that are not in `revision`."""
    tools: Mapping[str, str]
    """Versions that decide results: python, torch, verilator, …"""
    config_file: str
    config_digest: str
    command: str
    """The command line that made the plan."""
    sources: str = ""
    """Digest of the files that decide results: what --resume and workers must agree with."""
    partial: bool = False
    """Whether it is a selection of its tier (--filter, --only-failed): no night to compare with."""
    sequence: int = 0
    """1 for the first plan of the store, 2 for the next; 0 before it is stored."""


@dataclass(frozen=True, slots=True)
class Artefact:
    """A file that an attempt left: hashed and on disk before its row exists."""

    name: str
    """result.json, sim.log, junit.xml, …"""
    path: str
    """Relative to the store's folder."""
    sha256: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try of one item. Rows are only ever added."""

    plan_id: str
    item_id: str
    number: int
    """1 for the first try of this item in this plan."""
    status: JobStatus
    reason: str = ""
    """One line: the first failing op, the limit that was hit, why it was skipped."""
    skip_cause: SkipCause | None = None
    started_utc: str = ""
    seconds: float = 0.0
    """Wall-clock time by a clock that never jumps."""
    cpu_seconds: float | None = None
    """Of the job's processes; None where they could not be counted."""
    cycles: int | None = None
    ops: int = 0
    """Rows of the result."""
    failed_ops: int = 0
    result_hash: str | None = None
    """Of everything in the result but times and paths: equal for equal outcomes."""
    inputs_hash: str | None = None
    """Of capsules, configuration and revision: with equal inputs, results must be equal."""
    worker: str = ""
    """host:pid that ran it."""
    folder: str = ""
    """Where its files are, relative to the store's folder."""
    artefacts: tuple[Artefact, ...] = ()

    @property
    def id(self) -> str:
        """Names this try: what `make replay ID=…` takes, or any unique beginning of it."""
        return digest([self.plan_id, self.item_id, self.number], _ID_CHARACTERS)

    @property
    def red(self) -> bool:
        """Whether it makes the run fail."""
        return self.status.red or (self.skip_cause is not None and self.skip_cause.red)

    def artefact(self, name: str) -> Artefact | None:
        """The artefact of that name."""
        return next((found for found in self.artefacts if found.name == name), None)


@dataclass(frozen=True, slots=True)
class PastAttempt:
    """An executed attempt of an item in a former plan."""

    sequence: int
    status: JobStatus
    revision: str


SOURCES_STEP = "sources"
"""Name of the record that says that the sources of a plan changed while it ran."""


@dataclass(frozen=True, slots=True)
class PreparationRecord:
    """A build or a capture that items wait for; or that the sources changed meanwhile."""

    plan_id: str
    name: str
    """`build default check` or `capsule lenet seed 1`."""
    ok: bool
    cached: bool
    seconds: float
    cpu_seconds: float
    detail: str
    """Key of the build or hash of the capsule; the error where not ok."""


@dataclass(frozen=True, slots=True)
class ItemResult:
    """An item of a plan and what came of it so far."""

    item: PlannedJob
    attempts: tuple[Attempt, ...] = field(default=())
    """Oldest first."""

    @property
    def last(self) -> Attempt | None:
        """The try that counts."""
        return self.attempts[-1] if self.attempts else None

    @property
    def missing(self) -> bool:
        """Whether `--resume` has to run it: nothing yet, or stopped before its end."""
        last = self.last
        if last is None:
            return True
        declared = last.skip_cause is SkipCause.DECLARED
        return not last.status.executed and not declared

    @property
    def flaky(self) -> bool:
        """Whether equal inputs gave different results within this plan."""
        seen: dict[str, set[str]] = {}
        for attempt in self.attempts:
            if attempt.inputs_hash and attempt.result_hash:
                seen.setdefault(attempt.inputs_hash, set()).add(attempt.result_hash)
        return any(len(hashes) > 1 for hashes in seen.values())

    @property
    def retried(self) -> str | None:
        """How a try ended before the pass that counts, of equal inputs; None: none ended so."""
        last = self.last
        if last is None or last.status is not JobStatus.PASS:
            return None
        broken = (JobStatus.ERROR, JobStatus.TIMEOUT)
        former = [a for a in self.attempts if a.inputs_hash == last.inputs_hash]
        return next((a.status.value for a in former if a.status in broken), None)


def digest(value: object, characters: int = 64) -> str:
    """SHA-256 of plain data as JSON, cut to so many characters."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:characters]


def artefact_path(folder: str, name: str) -> str:
    """Path of an artefact of a job folder, relative to the store's folder."""
    return str(PurePosixPath(folder) / name)
