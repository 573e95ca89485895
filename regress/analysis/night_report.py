# SPDX-License-Identifier: Apache-2.0
"""What one night comes to: failures sorted, figures against the baseline, and the trend.

Derived from the store alone, so it can be made again at any time. Writes no page.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from driver.results import PROGRAM
from regress.analysis import baseline
from regress.analysis.known_issues import KNOWN_ISSUES, KnownIssue, load_known_issues
from regress.analysis.metrics import NightMetrics, metrics_of, stored_metrics
from regress.analysis.notify import Notification
from regress.analysis.triage import StatusChange, TriageResult, triage
from regress.nightly.run_plan import SITE_FOLDER, mixed_sources
from regress.nightly.settings import NightlyConfig, Tolerances, load_nightly
from regress.nightly.summary import count_results
from regress.paths import CONFIG_FILE, ROOT
from regress.results.model import ItemResult, Plan
from regress.results.night import Night, StoredJob, load_night
from regress.results.store import Store

INDEX_FILE = "index.html"
_TREND_NIGHTS = 60
_MAX_LINES = 10
"""Lines of one kind on the terminal; the page has all."""


@dataclass(frozen=True)
class ReferenceFiles:
    """The files of the repository that a night is compared with."""

    issues: Path = KNOWN_ISSUES
    baselines: Path = baseline.FOLDER


@dataclass(frozen=True)
class NightReport:
    """Everything that the terminal, the pages and the notifications show of one night."""

    night: Night
    triage: TriageResult
    moves: tuple[baseline.BaselineChange, ...]
    recorded: baseline.TierBaseline | None
    """The baseline of the tier; None without one."""
    metrics: tuple[NightMetrics, ...]
    """Of this night and those before it, oldest first."""
    untried: tuple[str, ...] = ()
    """Labels of the jobs that were red the night before and did not run."""

    @property
    def site(self) -> Path:
        """The folder of the pages."""
        return self.night.location.folder / SITE_FOLDER

    @property
    def page(self) -> Path:
        """The first page."""
        return self.site / INDEX_FILE

    @property
    def red(self) -> bool:
        """Whether the night is red though every job may have passed."""
        moved = any(move.kind.red for move in self.moves)
        return bool(self.triage.flaky or moved or self.mixed or self.lost)

    @property
    def mixed(self) -> bool:
        """Whether the sources changed while it ran."""
        return mixed_sources(self.night.preparations)

    @property
    def lost(self) -> tuple[StoredJob, ...]:
        """Jobs that passed and whose result is gone or another one."""
        return tuple(job for job in self.night.jobs if job.lost)

    @property
    def scope(self) -> tuple[str, ...]:
        """What the verdict does not speak of, and what it rests on: one line each."""
        return (*_broken(self), *_partial(self), *_not_compared(self))

    @property
    def failed(self) -> bool:
        """Whether the night as a whole is red. Known issues do not make it red."""
        counted = count_results(self.night.item_results, self.triage.expected)
        return self.red or self.triage.red or counted.exit_code != 0


def night_report(store: Store, plan_id: str, files: ReferenceFiles | None = None) -> NightReport:
    """Sort the failures of a plan and compare it with earlier nights and the baseline.

    Writes nothing. InputError for a damaged file of `files`.
    """
    files = files or ReferenceFiles()
    plan = store.plan(plan_id)
    night = load_night(store, plan)
    metrics = metrics_of(night)
    recorded = baseline.load(plan.tier, files.baselines)
    before = former_results(store, plan)
    found = _triage(night, files.issues, before)
    return NightReport(
        night=night,
        triage=found,
        moves=() if recorded is None else _moves(recorded, night, metrics, found.expected),
        recorded=recorded,
        metrics=(*_earlier(store, plan), metrics),
        untried=_untried(night, before),
    )


def _untried(night: Night, before: Iterable[ItemResult]) -> tuple[str, ...]:
    red = {result.item.id for result in before if result.last is not None and result.last.red}
    idle = (r.item for r in night.item_results if r.last is None or not r.last.status.executed)
    return tuple(item.label for item in idle if item.id in red)


def _triage(night: Night, issues: Path, before: Iterable[ItemResult]) -> TriageResult:
    results = {job.attempt.id: job.result for job in night.jobs if job.attempt.red}
    today = date.fromisoformat(night.plan.created_utc[:10])
    return triage(night.item_results, results, load_known_issues(issues), today, before)


def former_results(store: Store, plan: Plan) -> list[ItemResult]:
    """The night before of the same tier, a whole one; empty for the first."""
    for other in store.plans(plan.tier):
        if other.sequence < plan.sequence and not other.partial:
            return store.item_results(other.id)
    return []


def _moves(
    recorded: baseline.TierBaseline, night: Night, metrics: NightMetrics, expected: Set[str]
) -> tuple[baseline.BaselineChange, ...]:
    """A job that is expected to fail, as a known issue, is compared with nothing."""
    now = baseline.measure(night, metrics.ratchets())
    ran = executed_labels(night, expected)
    return baseline.compare(recorded, now, ran, tolerances(night), planned_labels(night))


def planned_labels(night: Night) -> frozenset[str] | None:
    """Labels of all jobs of the tier as its file has it; None where the plan is a selection of them
    or begins with another seed."""
    if night.plan.partial or night.plan.seed != _settings(night).seed:
        return None
    return frozenset(result.item.label for result in night.item_results)


def executed_labels(night: Night, without: Set[str] = frozenset()) -> list[str]:
    """Labels of the jobs that ran to an end; `without` those of these items."""
    ended = [job for job in night.jobs if job.attempt.status.executed]
    return [job.item.label for job in ended if job.item.id not in without]


def tolerances(night: Night) -> Tolerances:
    """Beyond which a figure of the night has moved."""
    return _settings(night).tolerances


def _settings(night: Night) -> NightlyConfig:
    """Of the file that the night was planned from; of the project's where that file is gone."""
    path = ROOT / night.plan.config_file
    return load_nightly(path if path.exists() else CONFIG_FILE)


def _earlier(store: Store, plan: Plan) -> list[NightMetrics]:
    whole = (p for p in store.plans(plan.tier) if not p.partial)
    ids = [p.id for p in whole if p.sequence < plan.sequence]
    return stored_metrics(store.folder / SITE_FOLDER, reversed(ids[: _TREND_NIGHTS - 1]))


def notification(report: NightReport) -> Notification:
    """The night in a few words."""
    night, found = report.night, report.triage
    jobs = night.jobs_by_item
    labels = {result.item.id: result.item.label for result in night.item_results}

    def changed(change: StatusChange) -> tuple[str, ...]:
        return tuple(labels[item] for item, made in found.changes.items() if made is change)

    unknown = [bucket.jobs[0] for bucket in found.buckets if bucket.issue is None]
    return Notification(
        tier=night.plan.tier,
        day=night.day,
        plan=night.plan.id,
        revision=night.plan.revision,
        red=report.failed,
        states={"not run" if s is None else s.value: n for s, n in night.statuses().items()},
        new=changed(StatusChange.NEW),
        fixed=changed(StatusChange.FIXED),
        flaky=tuple(item.label for item in found.flaky),
        scope=report.scope,
        worse=tuple(str(move) for move in report.moves if move.kind.red),
        replay=tuple(jobs[job.item.id].replay_line() for job in unknown),
        report=str(report.page),
    )


def text_lines(report: NightReport) -> tuple[str, ...]:
    """What the terminal shows after the summary."""
    found = report.triage
    lines = []
    stored = report.night.jobs_by_item
    for bucket in found.buckets[:_MAX_LINES]:
        issue = bucket.issue
        note = f"known, {issue.id} {issue.owner}" if issue else "no known issue"
        lines.append(f"{len(bucket.jobs)} × {bucket.signature} ({note})")
        if issue is None:
            lines.append(f"    {stored[bucket.jobs[0].item.id].replay_line()}")
    if len(found.buckets) > _MAX_LINES:
        lines.append(f"… and {len(found.buckets) - _MAX_LINES} more kinds of failure")
    lines += [f"flaky: {item.label}" for item in found.flaky]
    lines += [_not_met(issue, found) for issue in found.unexpected_passes]
    lines += [f"known issue {i.id} ({i.owner}) ended on {i.expires}" for i in found.expired]
    lines += [str(move) for move in report.moves[:_MAX_LINES]]
    if len(report.moves) > _MAX_LINES:
        lines.append(f"… and {len(report.moves) - _MAX_LINES} more changes against the baseline")
    if any(not move.kind.red for move in report.moves):
        night = report.night
        words = [*PROGRAM.split(), "baseline", night.plan.tier, *night.location.options()]
        lines.append(f"record the new figures: {shlex.join(words)}")
    return (*lines, *report.scope, f"open {report.page}")


def _not_met(issue: KnownIssue, found: TriageResult) -> str:
    if any(issue.covers(job.item.test, job.item.config) for job in found.jobs):
        what = "did not come, its test fails in another way: remove it, or mend its signature"
    else:
        what = "passes: remove it"
    return f"known issue {issue.id} ({issue.owner}) {what}"


def _broken(report: NightReport) -> Iterator[str]:
    """What makes the results themselves doubtful."""
    if report.mixed:
        yield "sources changed during the run: results are of different states"
    for job in report.lost:
        yield f"the result of a pass is gone or another one: {job.item.label}"
    for result in report.night.item_results:
        if result.retried is not None:
            yield f"passed after {result.retried} on equal inputs: {result.item.label}"


def _partial(report: NightReport) -> Iterator[str]:
    """What of the tier did not run."""
    night = report.night
    counted = count_results(night.item_results)
    if night.plan.partial:
        yield f"a selection of {night.plan.tier}, not the whole tier"
    if counted.executed < counted.planned:
        yield f"{counted.executed} of {counted.planned} jobs were executed"
    yield from (f"red the night before, and not run: {label}" for label in report.untried)


def _not_compared(report: NightReport) -> Iterator[str]:
    """What of a whole night has no baseline, or is none of the whole."""
    tier = report.night.plan.tier
    if report.recorded is None:
        yield f"no baseline of {tier} is recorded: nothing was compared with an earlier night"
    elif (planned := planned_labels(report.night)) is not None:
        # Those that are not planned any more are dropped: without them coverage is compared.
        expected = planned.intersection(report.recorded.passing)
        if idle := expected.difference(executed_labels(report.night)):
            yield f"coverage is not compared: {len(idle)} recorded jobs of {tier} did not run"
    if report.recorded is not None:
        ran = set(executed_labels(report.night))
        known = {label for label, job in report.recorded.jobs.items() if job.rows is not None}
        if ran - known:
            few = f"{len(ran - known)} of {len(ran)} jobs that ran"
            yield f"the baseline of {tier} does not say how many ops ran in {few}: record it again"
