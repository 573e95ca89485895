# SPDX-License-Identifier: Apache-2.0
"""What a night's failures are: the same bug once, known or new, and what changed since last night.

Pure: outcomes and results in, records out. Reads no file and no database.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum

from driver.failures import normalised
from driver.results import OpRow, RunResult
from regress.analysis.known_issues import KnownIssue
from regress.results.model import Attempt, ItemResult, JobStatus, PlannedJob


def op_signature(row: OpRow) -> str:
    """Of a failing op: whose fault, which op and type, why. Shapes and places do not count."""
    detail = "" if row.failure is None else normalised(row.failure.detail)
    return f"blame {row.blame}: {f'{row.op} {row.dtype}'.strip()}: {detail}"


def signatures(attempt: Attempt, result: RunResult | None) -> list[str]:
    """Of a job that is not a pass: its failing ops', then what was wrong besides: that it ended
    before its ops did, or what it said of the whole."""
    rows = () if result is None else result.ops
    found = [op_signature(row) for row in rows if row.status == "fail"]
    said = None if result is None else result.message
    if attempt.status is not JobStatus.FAIL or not found:
        said = attempt.reason
    return found if said is None else [*found, f"{attempt.status.value}: {normalised(said)}"]


@dataclass(frozen=True)
class FailedJob:
    """A job that did not pass, and the known issue that explains it, if any."""

    item: PlannedJob
    attempt: Attempt
    signatures: tuple[str, ...]
    """Of all that failed in it, one that no issue explains first."""
    issue: KnownIssue | None = None

    @property
    def signature(self) -> str:
        """What it is sorted by."""
        return self.signatures[0]


@dataclass(frozen=True)
class FailureBucket:
    """Failures with one signature: most likely one bug."""

    signature: str
    jobs: tuple[FailedJob, ...]

    @property
    def issue(self) -> KnownIssue | None:
        """The known issue of all of them, or None."""
        issues = {job.issue for job in self.jobs}
        return issues.pop() if len(issues) == 1 else None


class StatusChange(StrEnum):
    """How a job compares with the night before."""

    NEW = "new"
    """Failed now, and passed or did not exist before."""
    FIXED = "fixed"
    """Failed before, and passed now."""
    STILL = "still"
    """Failed both times."""


@dataclass(frozen=True)
class TriageResult:
    """A night's failures in order."""

    buckets: tuple[FailureBucket, ...]
    """Largest first; unknown ones before known ones."""
    changes: Mapping[str, StatusChange]
    """Item id → change, where there is one."""
    flaky: tuple[PlannedJob, ...]
    """Equal inputs, different results: within the night, or against the former one."""
    unexpected_passes: tuple[KnownIssue, ...]
    """Known issues whose tests ran and did not fail so: no longer true, or no longer met."""
    expired: tuple[KnownIssue, ...]
    """Entries past their day that a failure still matches."""
    unexpected: tuple[FailedJob, ...] = field(default=())
    """Failures without a known issue: they make the night red."""

    @property
    def jobs(self) -> tuple[FailedJob, ...]:
        """Of all buckets."""
        return tuple(job for bucket in self.buckets for job in bucket.jobs)

    @property
    def expected(self) -> frozenset[str]:
        """Ids of the items whose failure is a known issue."""
        return frozenset(job.item.id for job in self.jobs if job.issue)

    @property
    def red(self) -> bool:
        """Whether a failure is unexplained, or a job is flaky."""
        return bool(self.unexpected or self.flaky)

    def change_of(self, bucket: FailureBucket) -> StatusChange:
        """New when none of its jobs failed the night before."""
        changes = {self.changes.get(job.item.id, StatusChange.STILL) for job in bucket.jobs}
        return StatusChange.STILL if StatusChange.STILL in changes else StatusChange.NEW


def triage(
    item_results: Iterable[ItemResult],
    results: Mapping[str, RunResult | None],
    issues: Iterable[KnownIssue],
    today: date,
    before: Iterable[ItemResult] = (),
) -> TriageResult:
    """Sort a night's failures. `results` maps attempt ids; `before` is the former night."""
    item_results, issues, before = tuple(item_results), tuple(issues), tuple(before)
    valid = [issue for issue in issues if issue.expires >= today]
    tried = [(o.item, o.last) for o in item_results if o.last is not None]
    jobs = [
        _failed_job(item, attempt, results.get(attempt.id), valid)
        for item, attempt in tried
        if _failed(attempt)
    ]
    late = [issue for issue in issues if issue.expires < today]
    return TriageResult(
        buckets=_buckets(jobs),
        changes=_changes(item_results, before),
        flaky=_flaky(item_results, before),
        unexpected_passes=tuple(issue for issue in valid if _unexpected_pass(issue, tried, jobs)),
        expired=tuple(issue for issue in late if any(_is(issue, job) for job in jobs)),
        unexpected=tuple(job for job in jobs if job.issue is None),
    )


def _failed(attempt: Attempt) -> bool:
    """Red, and not because it was stopped from outside, which says nothing of its test."""
    return attempt.red and attempt.status is not JobStatus.KILLED


def _failed_job(
    item: PlannedJob, attempt: Attempt, result: RunResult | None, issues: Iterable[KnownIssue]
) -> FailedJob:
    """Known only when all that failed is: a new bug does not hide behind an old one. A build that
    failed is never known: nothing was tried."""
    failures = signatures(attempt, result)
    issues = () if attempt.status is JobStatus.SKIPPED else tuple(issues)
    found = [
        next((i for i in issues if i.matches(item.test, item.config, s)), None) for s in failures
    ]
    if None in found:
        at = found.index(None)
        return FailedJob(item, attempt, (failures[at], *failures[:at], *failures[at + 1 :]))
    return FailedJob(item, attempt, tuple(failures), found[0])


def _is(issue: KnownIssue, job: FailedJob) -> bool:
    return any(issue.matches(job.item.test, job.item.config, text) for text in job.signatures)


def _unexpected_pass(
    issue: KnownIssue, tried: Iterable[tuple[PlannedJob, Attempt]], jobs: Iterable[FailedJob]
) -> bool:
    """Its test ran to a verdict, and did not fail that way; where the issue names none, another
    tier may still have it."""
    ran = issue.test is not None and any(
        issue.covers(item.test, item.config) and attempt.status in (JobStatus.PASS, JobStatus.FAIL)
        for item, attempt in tried
    )
    return ran and not any(_is(issue, job) for job in jobs)


def _buckets(jobs: Iterable[FailedJob]) -> tuple[FailureBucket, ...]:
    groups: dict[str, list[FailedJob]] = {}
    for job in jobs:
        groups.setdefault(job.signature, []).append(job)
    found = [FailureBucket(name, tuple(members)) for name, members in groups.items()]
    return tuple(sorted(found, key=lambda b: (b.issue is not None, -len(b.jobs), b.signature)))


def _changes(
    item_results: Iterable[ItemResult], before: Iterable[ItemResult]
) -> dict[str, StatusChange]:
    """Only jobs with a verdict now have changed: one that was skipped has not been fixed."""
    was = {o.item.id: o.last.red for o in before if o.last is not None and o.last.status.executed}
    table = {
        (True, True): StatusChange.STILL,
        (True, False): StatusChange.FIXED,
        (False, True): StatusChange.NEW,
    }
    found: dict[str, StatusChange] = {}
    for item_result in item_results:
        last = item_result.last
        if last is None or not (last.status.executed or _failed(last)):
            continue
        change = table.get((was.get(item_result.item.id, False), last.red))
        if change is not None:
            found[item_result.item.id] = change
    return found


def _flaky(
    item_results: Iterable[ItemResult], before: Iterable[ItemResult]
) -> tuple[PlannedJob, ...]:
    former = {item_result.item.id: item_result for item_result in before}
    found = []
    for item_result in item_results:
        earlier = former.get(item_result.item.id)
        attempts = (() if earlier is None else earlier.attempts) + item_result.attempts
        if ItemResult(item_result.item, attempts).flaky:
            found.append(item_result.item)
    return tuple(found)
