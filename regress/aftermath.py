# SPDX-License-Identifier: Apache-2.0
"""What follows from a night: triage, ratchets, pages, news. Owns the order; each part is elsewhere.

Everything is derived from the store, so it can be done again at any time: `npu-cosim report`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from pathlib import Path

from driver.results import PROGRAM
from regress import baseline
from regress.known_issues import KNOWN_ISSUES, load_known_issues
from regress.nightly.model import Outcome, Plan
from regress.nightly.run_plan import SITE_FOLDER
from regress.nightly.settings import Tolerances, load_nightly
from regress.nightly.store import Store
from regress.notify import News
from regress.pages.failure import write_failures
from regress.pages.figures import Figures, figures_of, keep_figures, kept_figures
from regress.pages.night import Job, Night, load_night
from regress.pages.render import write_style
from regress.pages.site import INDEX_FILE, Told, write_site
from regress.paths import CONFIG_FILE, ROOT
from regress.triage import Change, Triage, triage

_TREND_NIGHTS = 60
_SHOWN = 10


@dataclass(frozen=True)
class Conclusion:
    """All that is known of a night once it is over."""

    told: Told
    page: Path

    @property
    def red(self) -> bool:
        """Whether somebody has to act, though every job may have passed."""
        flaky, moves = self.told.triage.flaky, self.told.moves
        return bool(flaky) or any(move.step.red for move in moves)

    @property
    def failed(self) -> bool:
        """Whether the night as a whole is red: not for what is known and expected."""
        incomplete = any(outcome.last is None for outcome in self.told.night.outcomes)
        return self.red or self.told.triage.red or incomplete

    @property
    def expected(self) -> frozenset[str]:
        """Ids of the items that fail as known."""
        buckets = self.told.triage.buckets
        return frozenset(r.item.id for bucket in buckets for r in bucket.reds if r.issue)


@dataclass(frozen=True)
class Ours:
    """The files in the repository that a night is held against."""

    issues: Path = KNOWN_ISSUES
    baselines: Path = baseline.FOLDER


def conclude(store: Store, plan_id: str, ours: Ours | None = None) -> Conclusion:
    """Study a plan and write its pages. InputError for a damaged file of ours."""
    found = study(store, plan_id, ours)
    keep_figures(found.page.parent, found.told.figures[-1])
    write_site(found.page.parent, found.told)
    return found


def study(store: Store, plan_id: str, ours: Ours | None = None) -> Conclusion:
    """Sort the failures of a plan and compare it with what was; nothing is written."""
    ours = ours or Ours()
    plan = store.plan(plan_id)
    night = load_night(store, plan)
    site = store.folder / SITE_FOLDER
    figures = figures_of(night)
    recorded = baseline.load(plan.tier, ours.baselines)
    told = Told(
        night=night,
        triage=_triage(store, night, ours.issues),
        moves=() if recorded is None else _moves(recorded, night, figures),
        recorded=recorded is not None,
        preparations=tuple(store.preparations(plan_id)),
        figures=(*_earlier(store, site, plan), figures),
    )
    return Conclusion(told, site / INDEX_FILE)


def show_failure(store: Store, job: Job) -> None:
    """Write the failure pages of one job again, and no other page."""
    site = store.folder / SITE_FOLDER
    write_style(site)
    for _ in write_failures(site, store.plan(job.attempt.plan_id), job):
        pass


def _triage(store: Store, night: Night, issues: Path) -> Triage:
    before = former_outcomes(store, night.plan)
    results = {job.attempt.id: job.result for job in night.jobs if job.attempt.red}
    today = date.fromisoformat(night.plan.created_utc[:10])
    return triage(night.outcomes, results, load_known_issues(issues), today, before)


def former_outcomes(store: Store, plan: Plan) -> list[Outcome]:
    """The night before of the same tier; empty for the first."""
    for other in store.plans(plan.tier):
        if other.sequence < plan.sequence:
            return store.outcomes(other.id)
    return []


def _moves(
    recorded: baseline.Baseline, night: Night, figures: Figures
) -> tuple[baseline.Move, ...]:
    now = baseline.measure(night, figures.ratchets())
    if not set(recorded.passing) <= set(tried(night)):  # less was run: that covers less
        now = now.model_copy(update={"figures": {}})
    return baseline.compare(recorded, now, tried(night), tolerances(night))


def tried(night: Night) -> list[str]:
    """Labels of the jobs that ran to an end."""
    return [job.item.label for job in night.jobs if job.attempt.state.executed]


def tolerances(night: Night) -> Tolerances:
    """Of the file that the night was planned from, or of our own where that was elsewhere."""
    path = ROOT / night.plan.config_file
    return load_nightly(path if path.exists() else CONFIG_FILE).tolerances


def _earlier(store: Store, site: Path, plan: Plan) -> list[Figures]:
    ids = [p.id for p in store.plans(plan.tier) if p.sequence < plan.sequence]
    return kept_figures(site, reversed(ids[: _TREND_NIGHTS - 1]))


def news_of(conclusion: Conclusion) -> News:
    """The night in a few words."""
    told = conclusion.told
    plan, found = told.night.plan, told.triage
    jobs = {job.item.id: job for job in told.night.jobs}
    labels = {outcome.item.id: outcome.item.label for outcome in told.night.outcomes}

    def changed(change: Change) -> tuple[str, ...]:
        return tuple(labels[item] for item, made in found.changes.items() if made is change)

    unknown = [bucket.reds[0] for bucket in found.buckets if bucket.issue is None]
    return News(
        tier=plan.tier,
        plan=plan.id,
        revision=plan.revision,
        red=conclusion.failed,
        states={"not run" if s is None else s.value: n for s, n in told.night.states().items()},
        new=changed(Change.NEW),
        fixed=changed(Change.FIXED),
        flaky=tuple(item.label for item in found.flaky),
        worse=tuple(str(move) for move in told.moves if move.step.red),
        replay=tuple(jobs[red.item.id].replay_line() for red in unknown),
        report=str(conclusion.page),
    )


def lines_of(conclusion: Conclusion) -> tuple[str, ...]:
    """What a terminal shows after the summary."""
    told, found = conclusion.told, conclusion.told.triage
    lines = []
    for bucket in found.buckets[:_SHOWN]:
        who = f"known, {bucket.issue.id} {bucket.issue.owner}" if bucket.issue else "unknown"
        lines.append(f"{len(bucket.reds)} × {bucket.signature} ({who})")
    if len(found.buckets) > _SHOWN:
        lines.append(f"… and {len(found.buckets) - _SHOWN} more kinds of failure")
    lines += [f"flaky: {item.label}" for item in found.flaky]
    lines += [f"known issue {i.id} ({i.owner}) passes: remove it" for i in found.surprises]
    lines += [f"known issue {i.id} ({i.owner}) ended on {i.expires}" for i in found.expired]
    lines += [str(move) for move in told.moves[:_SHOWN]]
    if any(not move.step.red for move in told.moves):
        lines.append(f"record what was gained: {PROGRAM} baseline {told.night.plan.tier}")
    return (*lines, f"open {conclusion.page}")
