# SPDX-License-Identifier: Apache-2.0
"""One night as the pages show it: a plan, its outcomes, and the files its jobs left.

Owns reading those files, once each and only when asked. A file that is gone is shown as gone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from driver.errors import InputError
from driver.evidence import CAPSULE, MAP_FILE, ErrorMap, folder_of
from driver.results import (
    COCOTB_FOLDER,
    RESULT_FILE,
    SPEC_FILE,
    OpRow,
    RunResult,
    RunSpec,
    read_json,
)
from regress.process import last_lines
from regress.results.location import StoreLocation
from regress.results.model import (
    Artefact,
    Attempt,
    ItemResult,
    JobStatus,
    Plan,
    PlannedJob,
    PreparationRecord,
)
from regress.results.store import Store
from regress.run import LOG_FILE

_LOG_LINES = 40
_Record = TypeVar("_Record", bound=BaseModel)


@dataclass(frozen=True)
class StoredJob:
    """The attempt of an item that counts, with its files."""

    item: PlannedJob
    attempt: Attempt
    folder: Path
    location: StoreLocation = field(default_factory=StoreLocation)
    """Of its store."""

    @cached_property
    def result(self) -> RunResult | None:
        """Its result.json; None where it left none, or where that is no longer what it left."""
        return self._own(self.folder / RESULT_FILE, RunResult)

    @cached_property
    def spec(self) -> RunSpec | None:
        """Its run.json; None where it never started, or where that is no longer what it left."""
        return self._own(self.folder / SPEC_FILE, RunSpec)

    @property
    def lost(self) -> bool:
        """Whether it passed and the result that says so is gone or another one."""
        return self.attempt.status is JobStatus.PASS and self.result is None

    @property
    def failing(self) -> tuple[OpRow, ...]:
        """Its failing ops."""
        result = self.result
        return () if result is None else tuple(op for op in result.ops if op.status == "fail")

    def error_map(self, row: OpRow) -> ErrorMap | None:
        """Where the result of an op is wrong; None where there is no map."""
        return self._own(folder_of(self.folder, row.index) / MAP_FILE, ErrorMap)

    def log(self, row: OpRow | None = None) -> tuple[Path, list[str]]:
        """The log that says most about the job or one of its ops, and the last lines of it; no
        lines where all are empty. The simulator of a cocotb test has a log of its own."""
        if not self.attempt.folder:
            return self.folder / LOG_FILE, []
        tests = self.folder / COCOTB_FOLDER
        named = [] if row is None else [tests / row.op / LOG_FILE]
        own = self.folder / LOG_FILE
        for path in (*named, own, *sorted(tests.glob(f"*/{LOG_FILE}"))):
            lines = last_lines(path, _LOG_LINES)
            if lines:
                return path, lines
        return own, []

    def capsule(self, row: OpRow) -> Path | None:
        """The operands that an op left, if it did. InputError where they have been changed since:
        they would tell of another op."""
        path = folder_of(self.folder, row.index) / CAPSULE
        if not path.is_dir():
            return None
        if not self._is_as_left(path):
            raise InputError(path, "capsule", "changed files", "the operands that the op left")
        return path

    def _own(self, path: Path, model: type[_Record]) -> _Record | None:
        """The record of a file; None where there is none that can be read, as of an attempt that
        never had a folder (what lies in the store itself is not of it), or it was changed since."""
        return _read(path, model) if self.attempt.folder and self._is_as_left(path) else None

    def _is_as_left(self, path: Path) -> bool:
        """Whether a file, or all files of a folder, have the bytes that were stored of them."""
        name = path.relative_to(self.folder).as_posix()
        stored = (
            found
            for found in self.attempt.artefacts
            if found.name == name or found.name.startswith(f"{name}/")
        )
        return all(unaltered(self.folder / found.name, found) for found in stored)

    def page(self, row: OpRow | None = None) -> str:
        """Name of its failure page, or of the page of one of its ops."""
        return f"{self.attempt.id}.html" if row is None else f"{self.attempt.id}-op{row.index}.html"

    def replay_line(self, row: OpRow | None = None) -> str:
        """The line that reproduces it."""
        return self.line("replay", row)

    def line(self, target: str, row: OpRow | None = None) -> str:
        """The make line that does something about it, from anywhere in the project."""
        words = [f"make {target} ID={self.attempt.id}"]
        words += [] if row is None else [f"OP={row.index}"]
        return " ".join([*words, *self.location.variables()])


@dataclass(frozen=True)
class Night:
    """A plan and what came of it."""

    plan: Plan
    item_results: tuple[ItemResult, ...]
    location: StoreLocation
    """Of its store."""
    jobs: tuple[StoredJob, ...] = field(default=())
    """Of the items that were tried, in the order of the plan."""
    preparations: tuple[PreparationRecord, ...] = field(default=())
    """The builds and captures of the plan."""

    @property
    def day(self) -> str:
        """When it was planned, to the minute."""
        return self.plan.created_utc[:16].replace("T", " ")

    @property
    def jobs_by_item(self) -> dict[str, StoredJob]:
        """Item id → job."""
        return {job.item.id: job for job in self.jobs}

    @property
    def baseline_line(self) -> str:
        """The make line that records the night's figures."""
        return " ".join([f"make baseline TIER={self.plan.tier}", *self.location.variables()])

    def statuses(self) -> dict[JobStatus | None, int]:
        """How many items are in which status; None for those without an attempt."""
        counts: dict[JobStatus | None, int] = {}
        for item_result in self.item_results:
            status = None if item_result.last is None else item_result.last.status
            counts[status] = counts.get(status, 0) + 1
        return counts

    def rows(self) -> Iterator[tuple[StoredJob, OpRow]]:
        """Every op of every job that left a result."""
        for job in self.jobs:
            result = job.result
            for row in () if result is None else result.ops:
                yield job, row


def load_night(store: Store, plan: Plan) -> Night:
    """A stored plan with its outcomes."""
    item_results = tuple(store.item_results(plan.id))
    jobs = tuple(
        StoredJob(
            item_result.item, item_result.last, store.path(item_result.last.folder), store.location
        )
        for item_result in item_results
        if item_result.last is not None
    )
    return Night(plan, item_results, store.location, jobs, tuple(store.preparations(plan.id)))


def load_job(store: Store, identity: str) -> StoredJob:
    """The job of an attempt's id, or of a unique beginning of it. InputError when there is none."""
    item, attempt = store.attempt(identity)
    return StoredJob(item, attempt, store.path(attempt.folder), store.location)


def unaltered(path: Path, stored: Artefact) -> bool:
    """Whether a file has the bytes that were stored of it."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == stored.sha256
    except OSError:
        return False


def sizes_of(row: OpRow) -> str:
    """The shapes of an op's operands in words: 2×3 3×4."""
    return " ".join("×".join(map(str, shape)) for shape in row.shapes)


def _read(path: Path, model: type[_Record]) -> _Record | None:
    """The record of a file; None where there is none that can be read."""
    try:
        return read_json(path, model)
    except InputError:
        return None
