# SPDX-License-Identifier: Apache-2.0
"""What a night's failures are: the same bug once, known or new, and what changed since last night.

Pure: outcomes and results in, records out. Reads no file and no database.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum

from driver.results import OpRow, RunResult
from regress.known_issues import KnownIssue
from regress.nightly.model import Attempt, Outcome, PlanItem, State

_NORMAL: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"/\S+/"), ""),
    (re.compile(r"\b0x[0-9a-fA-F]+\b"), "HEX"),
    (re.compile(r"[-+]?\b\d+(?:\.\d+)?(?:e[-+]?\d+)?\b"), "N"),
    (re.compile(r"\b(?:nan|inf|-inf)\b"), "N"),
    (re.compile(r"\s+"), " "),
)
"""What differs between two meetings of one bug: paths, addresses, numbers, spaces."""
_SIGNATURE_LENGTH = 200


def normalised(text: str) -> str:
    """A message without what changes from one occurrence to the next."""
    for pattern, instead in _NORMAL:
        text = pattern.sub(instead, text)
    return text.strip()[:_SIGNATURE_LENGTH]


def op_signature(row: OpRow) -> str:
    """Of a failing op: whose fault, which op and type, why. Shapes and places do not count."""
    detail = "" if row.failure is None else normalised(row.failure.detail)
    return f"blame {row.blame}: {row.op} {row.dtype}: {detail}"


def signature(attempt: Attempt, result: RunResult | None) -> str:
    """Of a job that is not a pass: its first failing op's, or what the job said."""
    rows = () if result is None else result.ops
    first = next((row for row in rows if row.status == "fail"), None)
    if first is not None:
        return op_signature(first)
    return f"{attempt.state.value}: {normalised(attempt.reason)}"


@dataclass(frozen=True)
class Red:
    """A job that somebody has to look at, unless somebody knows already."""

    item: PlanItem
    attempt: Attempt
    signature: str
    issue: KnownIssue | None = None


@dataclass(frozen=True)
class Bucket:
    """Failures with one signature: most likely one bug."""

    signature: str
    reds: tuple[Red, ...]

    @property
    def issue(self) -> KnownIssue | None:
        """The known issue of all of them, or None."""
        issues = {red.issue for red in self.reds}
        return issues.pop() if len(issues) == 1 else None


class Change(StrEnum):
    """A job against the former night."""

    NEW = "new"
    """Failed now, and passed or did not exist before."""
    FIXED = "fixed"
    """Failed before, and passed now."""
    STILL = "still"
    """Failed both times."""


@dataclass(frozen=True)
class Triage:
    """A night's failures in order."""

    buckets: tuple[Bucket, ...]
    """Largest first; unknown ones before known ones."""
    changes: Mapping[str, Change]
    """Item id → change, where there is one."""
    flaky: tuple[PlanItem, ...]
    """Equal inputs, different results: within the night, or against the former one."""
    surprises: tuple[KnownIssue, ...]
    """Known issues whose tests ran and did not fail so: no longer true, or no longer met."""
    expired: tuple[KnownIssue, ...]
    """Entries past their day that a failure still matches."""
    unexpected: tuple[Red, ...] = field(default=())
    """Failures that nobody knows of: they make the night red."""

    @property
    def red(self) -> bool:
        """Whether the night has failed."""
        return bool(self.unexpected or self.flaky)

    def change_of(self, bucket: Bucket) -> Change:
        """New when none of its jobs failed the night before."""
        changes = {self.changes.get(red.item.id, Change.STILL) for red in bucket.reds}
        return Change.STILL if Change.STILL in changes else Change.NEW


def triage(
    outcomes: Iterable[Outcome],
    results: Mapping[str, RunResult | None],
    issues: Iterable[KnownIssue],
    today: date,
    before: Iterable[Outcome] = (),
) -> Triage:
    """Sort a night's failures. `results` maps attempt ids; `before` is the former night."""
    outcomes, issues, before = tuple(outcomes), tuple(issues), tuple(before)
    valid = [issue for issue in issues if issue.expires >= today]
    tried = [(o.item, o.last) for o in outcomes if o.last is not None]
    reds = [
        _red(item, attempt, results.get(attempt.id), valid)
        for item, attempt in tried
        if attempt.red
    ]
    late = [issue for issue in issues if issue.expires < today]
    return Triage(
        buckets=_buckets(reds),
        changes=_changes(outcomes, before),
        flaky=_flaky(outcomes, before),
        surprises=tuple(issue for issue in valid if _surprising(issue, tried, reds)),
        expired=tuple(issue for issue in late if any(_is(issue, red) for red in reds)),
        unexpected=tuple(red for red in reds if red.issue is None),
    )


def _red(
    item: PlanItem, attempt: Attempt, result: RunResult | None, issues: Iterable[KnownIssue]
) -> Red:
    """Known only when every failing op is: a new bug does not hide behind an old one."""
    failing = [] if result is None else [op for op in result.ops if op.status == "fail"]
    first = signature(attempt, result)
    signatures = [op_signature(row) for row in failing] or [first]
    found = [
        next((i for i in issues if i.matches(item.test, item.config, s)), None) for s in signatures
    ]
    if None in found:
        first = signatures[found.index(None)]
        return Red(item, attempt, first)
    return Red(item, attempt, first, found[0])


def _is(issue: KnownIssue, red: Red) -> bool:
    return issue.matches(red.item.test, red.item.config, red.signature)


def _surprising(
    issue: KnownIssue, tried: Iterable[tuple[PlanItem, Attempt]], reds: Iterable[Red]
) -> bool:
    """Its tests ran to a verdict, and none failed that way."""
    ran = any(
        issue.covers(item.test, item.config) and attempt.state in (State.PASS, State.FAIL)
        for item, attempt in tried
    )
    return ran and not any(_is(issue, red) for red in reds)


def _buckets(reds: Iterable[Red]) -> tuple[Bucket, ...]:
    groups: dict[str, list[Red]] = {}
    for red in reds:
        groups.setdefault(red.signature, []).append(red)
    found = [Bucket(name, tuple(members)) for name, members in groups.items()]
    return tuple(sorted(found, key=lambda b: (b.issue is not None, -len(b.reds), b.signature)))


def _changes(outcomes: Iterable[Outcome], before: Iterable[Outcome]) -> dict[str, Change]:
    """Only jobs with a verdict now have changed: one that was skipped has not been fixed."""
    was = {o.item.id: o.last.red for o in before if o.last is not None and o.last.state.executed}
    table = {
        (True, True): Change.STILL,
        (True, False): Change.FIXED,
        (False, True): Change.NEW,
    }
    found: dict[str, Change] = {}
    for outcome in outcomes:
        last = outcome.last
        if last is None or not (last.state.executed or last.red):
            continue
        change = table.get((was.get(outcome.item.id, False), last.red))
        if change is not None:
            found[outcome.item.id] = change
    return found


def _flaky(outcomes: Iterable[Outcome], before: Iterable[Outcome]) -> tuple[PlanItem, ...]:
    former = {outcome.item.id: outcome for outcome in before}
    found = []
    for outcome in outcomes:
        earlier = former.get(outcome.item.id)
        attempts = (() if earlier is None else earlier.attempts) + outcome.attempts
        if Outcome(outcome.item, attempts).flaky:
            found.append(outcome.item)
    return tuple(found)
