# SPDX-License-Identifier: Apache-2.0
"""The commands about nights and stored failures: read the store, do the work, print the result.

Every function returns the exit status: 0 good, 1 a verdict failed; errors are raised.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Literal, get_args

from rich.console import Console

from driver.errors import InfrastructureError, InputError
from driver.results import PROGRAM, write_text
from regress.analysis import baseline as baselines
from regress.analysis import notify
from regress.analysis.known_issues import load_known_issues
from regress.analysis.metrics import metrics_of, store_metrics
from regress.analysis.night_report import (
    NightReport,
    ReferenceFiles,
    executed_labels,
    night_report,
    notification,
    planned_labels,
    text_lines,
)
from regress.console import print_line
from regress.failures import bisect as bisection
from regress.failures.replay import ReplayVerdict, failing_row, replay_job
from regress.failures.shrink import shrink_job
from regress.failures.waves import record_waves
from regress.nightly.request import TierRequest
from regress.nightly.run_plan import SITE_FOLDER, mixed_sources
from regress.nightly.summary import count_results, resume_line
from regress.nightly.tier import ReportVerdict, run_tier
from regress.options import StoreOptions
from regress.pages.failure import STRIP_FILE, write_failures
from regress.pages.render import write_style
from regress.pages.site import write_site
from regress.pages.strip import draw_strip
from regress.progress import ProgressBar
from regress.results.database import DATABASE_FILE
from regress.results.model import Plan
from regress.results.night import load_job, load_night
from regress.results.store import Store
from regress.run import EXIT_CODES
from regress.run_report.text import show

Kind = Literal["fst", "vcd"]


@dataclass(frozen=True)
class Recipients:
    """Where notifications go."""

    webhook: str | None
    mail: Path | None
    sender: str
    to: tuple[str, ...]


def nightly(console: Console, request: TierRequest) -> int:
    """`npu-cosim nightly`: run a tier, then write its pages. InputError for files that it would be
    compared with, before anything runs."""
    baselines.load(request.tier)
    load_known_issues()
    return run_tier(console, request, write_report, recorded=baselines.recorded_seconds())


def write_report(store: Store, plan_id: str) -> ReportVerdict:
    """Analyse a plan that has been run, and write its pages."""
    report = report_pages(store, plan_id)
    return ReportVerdict(text_lines(report), report.red, report.triage.expected)


def report_pages(store: Store, plan_id: str, files: ReferenceFiles | None = None) -> NightReport:
    """The report of a plan, after its pages and metrics have been written."""
    report = night_report(store, plan_id, files)
    store_metrics(report.site, report.metrics[-1])
    write_site(report)
    return report


def reproduce(console: Console, location: StoreOptions, identity: str, op: int | None) -> int:
    """`npu-cosim reproduce`."""
    note = partial(print_line, console)
    with _opened(location) as store:
        found = replay_job(load_job(store, identity), partial(ProgressBar, console), op)
    show(console, found.outcome.result, map(str, found.outcome.artefacts))
    note(f"stored  {found.stored}")
    note(f"now     {found.now}")
    note(f"{found.verdict.value}")
    status = EXIT_CODES[found.outcome.result.status]
    return status or int(found.verdict is not ReplayVerdict.GONE)


def waves(
    console: Console, location: StoreOptions, identity: str, op: int | None, kind: str
) -> int:
    """`npu-cosim waves`. Status 0 when the waves are there, whatever the op came to."""
    if kind not in get_args(Kind):
        raise InputError("command line", "kind", kind, f"one of {', '.join(get_args(Kind))}")
    note = partial(print_line, console)
    with _opened(location) as store:
        job = load_job(store, identity)
        found = record_waves(
            job, partial(ProgressBar, console), op, "vcd" if kind == "vcd" else "fst"
        )
        strip = found.waves.with_name(STRIP_FILE)
        write_text(strip, draw_strip(found.file, found.markers))
        site = store.folder / SITE_FOLDER
        write_style(site)
        pages = list(
            write_failures(site, store.plan(job.attempt.plan_id), load_job(store, identity))
        )
    for name, cycle in found.markers.items():
        note(f"{name:18} cycle {cycle:,}")
    note(shlex.join(["gtkwave", str(found.waves), str(found.gtkwave_view)]))
    note(shlex.join(["surfer", "-c", str(found.surfer_commands), str(found.waves)]))
    note(f"strip   {strip}")
    note(f"page    {_page_of(pages, job.page(found.row))}")
    if found.outcome.exit_code == 0:
        note("the op passes now: these are the waves of a run without the failure")
    return 0


def _page_of(pages: list[Path], name: str) -> Path:
    """The page of the recorded op; the job's first where that op has none."""
    return next((page for page in pages if page.name == name), pages[0])


def shrink(
    console: Console, location: StoreOptions, identity: str, op: int | None, rounds: int
) -> int:
    """`npu-cosim shrink`."""
    note = partial(print_line, console)
    with _opened(location) as store:
        job = load_job(store, identity)
        found = shrink_job(job, op, rounds, note=note)
    note(f"{found.before} → {found.after}, {found.trials} trials in {found.rounds} runs")
    note(f"test    {found.test}")
    note(f"capsule {found.capsule}")
    return 0


def triage(console: Console, location: StoreOptions, plan_id: str | None) -> int:
    """`npu-cosim triage`."""
    note = partial(print_line, console)
    with _opened(location) as store:
        report = night_report(store, _plan(store, None, plan_id).id)
    labels = {result.item.id: result.item.label for result in report.night.item_results}
    for item, change in report.triage.changes.items():
        note(f"{change.value:6} {labels[item]}")
    for text in text_lines(report):
        note(text)
    if not count_results(report.night.item_results).complete:
        note(resume_line(report.night.plan, report.night.location))
    return int(report.failed)


def bisect(
    console: Console,
    location: StoreOptions,
    identity: str,
    op: int | None,
    span: tuple[str, str],
) -> int:
    """`npu-cosim bisect`."""
    note = partial(print_line, console)
    with _opened(location) as store:
        job = load_job(store, identity)
        row = failing_row(job, op)
        progress = ProgressBar(console, f"bisect {job.attempt.id}", "revisions")
        found = bisection.bisect_job(job, row, span, progress)
    note(f"first bad revision: {found.first_bad} {found.subject}")
    if found.untestable:
        note(f"could not be tried, and may be it as well: {' '.join(found.untestable)}")
    return 0


def baseline(
    console: Console, location: StoreOptions, tier: str | None, plan_id: str | None, check: bool
) -> int:
    """`npu-cosim baseline`."""
    note = partial(print_line, console)
    with _opened(location) as store:
        plan = _plan(store, tier, plan_id)
        if check:
            found = night_report(store, plan.id)
            path = baselines.path_of(plan.tier)
            if found.recorded is None:
                raise InputError(path, "file", "missing", f"what `{PROGRAM} baseline` records")
            for move in found.moves:
                note(str(move))
            ran = set(found.recorded.passing).intersection(executed_labels(found.night))
            note(f"{len(ran)} of {len(found.recorded.passing)} recorded jobs ran")
            note(f"{len(found.moves)} moves against {path}")
            if not ran:
                raise InfrastructureError(f"plan {plan.id}: nothing to compare with {path}")
            return int(any(move.kind.red for move in found.moves))
        night = load_night(store, plan)
        if mixed_sources(night.preparations):
            raise InputError(
                f"plan {plan.id}", "sources", "changed while it ran", "those of one state"
            )
        now = baselines.measure(night, metrics_of(night).ratchets())
        all_jobs = planned_labels(night)
        tried = executed_labels(night)
        path = baselines.record(now, tried, planned=all_jobs)
    for label in sorted(set(tried).difference(now.passing)):
        note(f"keeps what was recorded, since it did not pass: {label}")
    note(f"recorded {len(now.passing)} jobs and {len(now.ops)} ops: commit {path}")
    return 0


def report(
    console: Console,
    location: StoreOptions,
    plan_id: str | None,
    to: Recipients,
    newer_than_s: float | None = None,
) -> int:
    """`npu-cosim report`. InputError for a night of longer ago than that: it is not tonight's."""
    if to.webhook is not None:
        notify.check_webhook(to.webhook)
    if to.mail is not None:
        notify.check_mail(to.mail)
    note = partial(print_line, console)
    with _opened(location) as store:
        plan = _plan(store, None, plan_id)
        age_s = (datetime.now(UTC) - datetime.fromisoformat(plan.created_utc)).total_seconds()
        if newer_than_s is not None and age_s > newer_than_s:
            expected = "a newer one: the night that was to be reported left no plan"
            raise InputError(store.folder, "plan", f"{plan.id} of {plan.created_utc}", expected)
        found = report_pages(store, plan.id)
    message = notification(found)
    if to.mail is not None:
        notify.write_mail(to.mail, message, to.sender, to.to)
        note(f"wrote {to.mail}")
    if to.webhook is not None:
        notify.post(to.webhook, message)
        note("sent to the webhook")
    note(f"open {found.page}")
    return 0


def _opened(location: StoreOptions) -> Store:
    """The store. InputError where there is none: these commands only read."""
    if location.store is None and not (location.out / DATABASE_FILE).is_file():
        expected = f"a folder of results, as `{PROGRAM} nightly` makes it"
        found = "no results" if location.out.is_dir() else "missing"
        raise InputError(location.out, "folder", found, expected)
    return Store.open(location.out, location.store, create=False)


def _plan(store: Store, tier: str | None, plan_id: str | None) -> Plan:
    """The plan of that id, or the last one of the tier. InputError when there is none."""
    if plan_id is not None:
        plan = store.plan(plan_id)
        if tier not in (None, plan.tier):
            raise InputError("command line", "--plan", plan_id, f"a plan of {tier}")
        return plan
    plans = store.plans(tier, limit=1)
    if not plans:
        raise InputError(store.folder, "plan", "none" if tier is None else f"none of {tier}", "one")
    return plans[0]
