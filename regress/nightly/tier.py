# SPDX-License-Identifier: Apache-2.0
"""`npu-cosim nightly TIER`: plan or resume, run, summarise. Owns the order of these steps."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from driver.errors import InfrastructureError, NpuError
from regress.console import print_line
from regress.folder import check_absent, locked, present
from regress.invoke import INTERRUPTED
from regress.nightly import priority, summary
from regress.nightly.cluster import check_scheduler, scheduler_at, security_of
from regress.nightly.display import PlanDisplay
from regress.nightly.estimate import (
    Seconds,
    duration_text,
    estimate,
    expected_seconds,
    stored_seconds,
)
from regress.nightly.pool import LocalPool, Pool
from regress.nightly.prepare import BuildFunction, PrepareStep
from regress.nightly.request import TierRequest, no_plan, planned, tier_jobs
from regress.nightly.run_plan import (
    PLANS_FOLDER,
    SITE_FOLDER,
    PlanContext,
    PlanRunner,
    missing,
    plan_folder,
)
from regress.nightly.scheduler import RunControl, TimeBudget, interruptible
from regress.nightly.settings import NightlyConfig, load_nightly
from regress.results.database import DATABASE_FILE
from regress.results.model import ItemResult, Plan, PlannedJob, SkipCause
from regress.results.store import Store
from regress.run import list_tests

JUNIT_FILE = "junit.xml"
_HISTORY_PLANS = 50
"""Plans that are looked at for what usually happens to an item."""


@dataclass(frozen=True)
class ReportVerdict:
    """What the reports of a plan add to its summary."""

    lines: tuple[str, ...] = ()
    red: bool = False
    """Whether the run is red though every item may have passed: a figure left its baseline, or
    equal inputs gave different results."""
    expected: frozenset[str] = frozenset()
    """Ids of the items whose failure is a known issue: they do not count for the exit status."""


WriteReport = Callable[[Store, str], ReportVerdict]
"""Store and plan id → the verdict, after the reports have been written. InputError and
InfrastructureError are printed and leave exit status 3: results are stored by then."""


def no_report(_store: Store, _plan_id: str) -> ReportVerdict:
    """Writes nothing."""
    return ReportVerdict()


def run_tier(
    console: Console,
    request: TierRequest,
    write_report: WriteReport = no_report,
    context: PlanContext | None = None,
    recorded: Mapping[str, float] | None = None,
) -> int:
    """Exit status: that of the summary, or 130 when the user ended the run.

    `recorded`: label → s that a job took elsewhere, for a machine without a record.
    """
    request.check()
    settings = load_nightly(request.config_file)
    if request.scheduler is not None:
        check_scheduler(request.scheduler, settings.cluster, request.config_file)
    if request.store_url is None and not present(request.folder / DATABASE_FILE):
        _check_unused(request.folder)
    context = context or bench_context(request.config_file)
    tier_jobs(request, settings, context)
    with ExitStack() as stack:
        store = stack.enter_context(_opened(request, stack))
        expected = expected_seconds({**(recorded or {}), **stored_seconds(store)})
        if request.dry_run:
            plan, items = planned(store, request, settings, context)
            dry = _DryRun(store, context, request.jobs or settings.jobs, expected)
            return dry.show(console, _order(store, plan, items))
        with locked(store.folder, "folder"):
            plan, items = planned(store, request, settings, context)
            if not store.plans(limit=1):
                _check_unused(store.folder)
            with _pool(store, request, settings, context) as (pool, build):
                if not plan.sequence:
                    plan = store.add_plan(plan, items)  # now that all is known to be there
                run = TierRun(
                    console, store, plan, context, expected=expected, write_report=write_report
                )
                return run.run(items, pool, request.budget_s, build)


def _opened(request: TierRequest, stack: ExitStack) -> Store:
    """The store. What asks for a former plan makes none: InputError where there is none. Neither
    does a dry run: InputError where a URL has none, one that does not stay where a folder has
    none."""
    folder, dry = request.folder, request.dry_run
    former = request.resume or request.only_failed
    if request.store_url is None and not present(folder / DATABASE_FILE):
        if former:
            raise no_plan(folder, request.tier)
        if dry:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="npu-dry-")))
        return Store.open(folder)
    return Store.open(folder, request.store_url, create=not (dry or former))


def _check_unused(folder: Path) -> None:
    """InputError when a folder without plans has files where those of plans would go."""
    for name in (PLANS_FOLDER, SITE_FOLDER):
        check_absent(folder / name, "folder")


def bench_context(config_file: Path) -> PlanContext:
    """The real bench's tests, run by the real runner."""
    return PlanContext(config_file.absolute(), {test.name: test for test in list_tests()})


@contextmanager
def _pool(
    store: Store, request: TierRequest, settings: NightlyConfig, context: PlanContext
) -> Iterator[tuple[Pool, BuildFunction | None]]:
    """Where the jobs run, and what builds for them there."""
    if request.scheduler is None:
        yield LocalPool(store.folder, request.jobs or settings.jobs), None
        return
    from regress.nightly.dask_pool import DaskPool, RemoteSettings  # noqa: PLC0415 (dask)

    remote = RemoteSettings(context.remote_sources(), settings.worker_retries, context.cache)
    security = security_of(settings.cluster, request.config_file)
    with scheduler_at(request.scheduler, settings.cluster, security) as address:
        pool = DaskPool(address, store.folder, remote, security)
        yield pool, pool.build


def _order(store: Store, plan: Plan, items: Sequence[PlannedJob]) -> tuple[PlannedJob, ...]:
    """Most valuable first; a plan that is not stored yet will be the next."""
    sequence = plan.sequence or 1 + max((last.sequence for last in store.plans(limit=1)), default=0)
    history = store.history_of_items(_HISTORY_PLANS)
    return priority.by_priority(items, history, priority.changed_since, sequence)


@dataclass(frozen=True)
class _DryRun:
    """Shows a plan with the times that its jobs are expected to take."""

    store: Store
    context: PlanContext
    slots: int
    expected: Seconds

    def show(self, console: Console, items: Sequence[PlannedJob]) -> int:
        for item in items:
            seconds = self.expected(item)
            time = "-" if seconds is None else duration_text(seconds)
            note = f"skipped: {item.skip}" if item.skip else time
            console.print(f"{item.id}  {item.label}  {note}", markup=False, highlight=False)
        total = estimate(items, self.expected, self.slots, self._preparations(items))
        print_line(console, str(total))
        return 0

    def _preparations(self, items: Sequence[PlannedJob]) -> Iterator[float]:
        """Seconds of the builds and captures of the items, where they have been made before."""
        names = {step.name for item in items for step in self._steps(item)}
        made = self.store.preparation_seconds()
        return (made[name] for name in names if name in made)

    def _steps(self, item: PlannedJob) -> tuple[PrepareStep, ...]:
        return self.context.steps_of(item, self.context.tests)


class TierRun:
    """One run of a stored plan, from the first build to the summary."""

    def __init__(
        self,
        console: Console,
        store: Store,
        plan: Plan,
        context: PlanContext,
        *,
        expected: Seconds,
        write_report: WriteReport,
    ) -> None:
        self._expected = expected
        self._write_report = write_report
        self._console = console
        self._store = store
        self._plan = plan
        self._control = RunControl()
        self._run = PlanRunner(store, plan, context, self._control, self._note)

    def run(
        self,
        items: Sequence[PlannedJob],
        pool: Pool,
        budget_s: float | None = None,
        build: BuildFunction | None = None,
    ) -> int:
        """Run the items; the exit status."""
        budget = None if budget_s is None else TimeBudget(budget_s, self._expected)
        self._note(f"plan {self._plan.id}: {len(items)} jobs")
        self._run.leave_out([item for item in items if item.skip], SkipCause.DECLARED, None)
        wanted = _order(self._store, self._plan, [item for item in items if not item.skip])
        with interruptible(self._control, self._note):
            ready = self._run.prepare(wanted, build, budget)
            title = self._plan.tier
            with PlanDisplay(self._console, title, ready, pool.slots, self._expected) as display:
                self._run.run(ready, pool, display, budget)
        return self._finish()

    def _finish(self) -> int:
        """Summary, JUnit and reports; the exit status. Results are safe by now: a report that
        cannot be written is said, and makes the run red, as results of several sources do."""
        item_results = self._store.item_results(self._plan.id)
        summary.show(self._console, self._plan, item_results, self._store.location)
        sound = self._run.check_sources()
        verdict, written = ReportVerdict(), True
        try:
            self._write_junit(item_results)
            verdict = self._write_report(self._store, self._plan.id)
        except (NpuError, OSError) as error:
            self._note(f"error: reports: {error}")
            written = False
        for line in verdict.lines:
            self._note(line)
        if self._control.drain and missing(item_results):
            return INTERRUPTED
        code = summary.count_results(item_results, verdict.expected).exit_code or int(verdict.red)
        return code if written and sound else InfrastructureError.exit_code

    def _write_junit(self, item_results: Sequence[ItemResult]) -> None:
        junit = plan_folder(self._store, self._plan.id) / JUNIT_FILE
        junit.parent.mkdir(parents=True, exist_ok=True)
        summary.write_plan_junit(self._plan, item_results, junit)
        share = summary.build_share(item_results, self._store.preparations(self._plan.id))
        for line in filter(None, (share, str(junit))):
            self._note(line)

    def _note(self, text: str) -> None:
        print_line(self._console, text)
