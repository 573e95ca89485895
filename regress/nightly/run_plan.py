# SPDX-License-Identifier: Apache-2.0
"""Runs what is missing of a stored plan: preparations, then jobs, each attempt stored as it comes.

The one engine behind the tiers and behind a test that is cut into shards. Prints nothing itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from driver.results import RunSpec
from driver.test_info import TestInfo
from regress.nightly.estimate import expected_seconds, stored_seconds
from regress.nightly.job import JobSpec, capsule_names, skipped
from regress.nightly.pool import Pool
from regress.nightly.prepare import (
    BUILD_STEP,
    CAPSULE_STEP,
    BuildFunction,
    PrepareResult,
    PrepareStep,
    do_step,
    prepare,
    profiled,
    steps_of,
)
from regress.nightly.provenance import sources
from regress.nightly.scheduler import (
    RunControl,
    Scheduler,
    SchedulerCallbacks,
    SchedulerDisplay,
    TimeBudget,
)
from regress.nightly.variants import Simulator, profiled_simulators, simulator_of
from regress.paths import BUILD
from regress.results.model import (
    SOURCES_STEP,
    Attempt,
    ItemResult,
    Plan,
    PlannedJob,
    PreparationRecord,
    SkipCause,
    digest,
)
from regress.results.store import Store
from regress.run import RUNNER

PLANS_FOLDER = "plans"
SITE_FOLDER = "report"
"""Of the pages, inside the folder of the store."""
LOGS_FOLDER = "prepare"


@dataclass(frozen=True)
class PlanContext:
    """What a plan runs with."""

    config_file: Path
    tests: Mapping[str, TestInfo]
    runner: tuple[str, ...] = RUNNER
    steps_of: Callable[[PlannedJob, Mapping[str, TestInfo]], tuple[PrepareStep, ...]] = steps_of
    sources: Callable[[], str] = sources
    """Digest of what decides the results."""
    cache: Path = BUILD / "capsules" / "by-hash"
    """Where workers of other machines keep capsules."""
    in_project: bool = True
    """Whether the bench is the project's: workers must have the same sources then."""
    base: RunSpec | None = None
    """Of a single test that is cut into shards: all that its items have in common."""

    def remote_sources(self) -> str | None:
        """The digest that workers must agree with."""
        return self.sources() if self.in_project else None

    def spec(self, item: PlannedJob, capsules: dict[str, Path], out: Path) -> RunSpec:
        """What the bench is asked for an item."""
        if self.base is not None:
            return self.base.model_copy(update={"out": out, "shard": item.shard})
        return RunSpec(
            test=item.test,
            config=item.config,
            config_file=self.config_file,
            seed=item.seed,
            backend=item.backend,
            waves="none",  # a passing run never traces; a failing op is run again for its waves
            out=out,
            capsules=capsules,
            op_filter=None,
            timeout_s=item.wall_s,
            shard=item.shard,
            modes=self.tests[item.test].modes if item.mode is None else (item.mode,),
            allow_cpu=item.allow_cpu,
            array=item.array,
        )


def plan_folder(store: Store, plan_id: str) -> Path:
    """Where a plan's files are."""
    return store.folder / PLANS_FOLDER / plan_id


class PlanRunner:
    """One execution of a plan."""

    def __init__(
        self,
        store: Store,
        plan: Plan,
        context: PlanContext,
        control: RunControl,
        note: Callable[[str], None],
    ) -> None:
        self._store = store
        self._plan = plan
        self._context = context
        self._control = control
        self._note = note
        self._prepared: dict[PrepareStep, PrepareResult] = {}
        self._profiled: frozenset[Simulator] = frozenset()
        self._seen = {plan.sources}
        self._numbers = Counter(attempt.item_id for attempt in store.attempts(plan.id))

    def leave_out(self, items: Iterable[PlannedJob], cause: SkipCause, reason: str | None) -> None:
        """Record items as not started; `reason` None takes each item's own."""
        attempts = [
            skipped(self._plan.id, item, self._next(item), cause, reason or item.skip or "")
            for item in items
        ]
        self._store.add_attempts(attempts)
        self._numbers.update(attempt.item_id for attempt in attempts)

    def prepare(
        self,
        items: Sequence[PlannedJob],
        build: BuildFunction | None = None,
        budget: TimeBudget | None = None,
    ) -> tuple[PlannedJob, ...]:
        """Build and capture for the items, in their order, as long as the budget lasts; those that
        can run. The others are left out.

        `build` makes simulators where the jobs will run, when that is not here.
        """
        self._choose_builds(items)
        steps = {item: self._steps(item) for item in items}
        prepare(
            (step for wanted in steps.values() for step in wanted),
            lambda step: self._do(step, build),
            self._keep_step,
            lambda: not (self._control.drain or (budget is not None and budget.left <= 0)),
        )
        ready = []
        for item, wanted in steps.items():
            failed = [step for step in wanted if step in self._prepared and not self._ok(step)]
            if self._control.stop:
                continue
            if failed:
                reason = f"{failed[0].name}: {self._prepared[failed[0]].detail}"
                self.leave_out([item], SkipCause.PREPARATION, reason)
            elif all(step in self._prepared for step in wanted):
                ready.append(item)
            elif not self._control.drain:
                self._store.add_attempt(self._unaffordable(item))
                self._numbers[item.id] += 1
        return tuple(ready)

    def run(
        self,
        items: Iterable[PlannedJob],
        pool: Pool,
        display: SchedulerDisplay,
        budget: TimeBudget | None = None,
    ) -> None:
        """Run items that are prepared, in their order."""
        handlers = SchedulerCallbacks(self._job, self._keep, self._unaffordable)
        Scheduler(pool, handlers, display, self._control, budget).run(items)

    def check_sources(self) -> bool:
        """Whether the results are all of the sources that were planned; stores that they are not,
        also when the sources are back to what they were."""
        self._seen.add(self._context.sources())
        if len(self._seen) > 1:
            said = "changed during the run; results are of different states"
            row = PreparationRecord(self._plan.id, SOURCES_STEP, False, False, 0.0, 0.0, said)
            self._store.add_preparation(row)
            self._note(f"warning: sources {said}")
        return not mixed_sources(self._store.preparations(self._plan.id))

    # ------------------------------------------------------------------ steps
    def _choose_builds(self, items: Sequence[PlannedJob]) -> None:
        """The simulators that are worth a profile-guided build, by the stored times of jobs."""
        tests = self._context.tests
        on_rtl = [i for i in items if i.backend == "rtl" and tests[i.test].kind == "ops"]
        expected = expected_seconds(stored_seconds(self._store))
        self._profiled = profiled_simulators(on_rtl, expected)
        if self._context.base is not None and self._context.base.variant == "pgo":
            self._profiled |= {simulator_of(item) for item in on_rtl}

    def _pgo(self, item: PlannedJob) -> bool:
        if item.backend != "rtl" or self._context.tests[item.test].kind != "ops":
            return False
        return simulator_of(item) in self._profiled

    def _steps(self, item: PlannedJob) -> tuple[PrepareStep, ...]:
        steps = self._context.steps_of(item, self._context.tests)
        return tuple(map(profiled, steps)) if self._pgo(item) else steps

    def _wanted(self) -> bool:
        return not self._control.stop

    def _do(self, step: PrepareStep, build: BuildFunction | None) -> tuple[PrepareResult, bool]:
        config_file = self._context.config_file
        if build is not None and step.kind == BUILD_STEP:
            return build(step, config_file, self._wanted)
        logs = plan_folder(self._store, self._plan.id) / LOGS_FOLDER
        return do_step(step, config_file, logs, self._wanted, self._note)

    def _ok(self, step: PrepareStep) -> bool:
        return self._prepared[step].ok

    def _keep_step(
        self, step: PrepareStep, prepared: PrepareResult, row: PreparationRecord
    ) -> None:
        self._prepared[step] = prepared
        self._store.add_preparation(replace(row, plan_id=self._plan.id))
        if not prepared.ok:
            self._note(f"{step.name}: {prepared.detail}")
        elif not row.cached:
            self._note(f"{step.name}: {row.seconds:.0f} s")

    # ------------------------------------------------------------------ jobs
    def _next(self, item: PlannedJob) -> int:
        return self._numbers[item.id] + 1

    def _job(self, item: PlannedJob) -> JobSpec:
        number = self._next(item)
        info = self._context.tests[item.test]
        capsules = {
            name: self._prepared[step]
            for name, workload in capsule_names(item, info.workloads).items()
            for step in [PrepareStep(CAPSULE_STEP, workload, str(item.seed))]
            if step in self._prepared
        }
        folder = self._fresh_folder(item, number)
        paths = {name: _folder(found) for name, found in capsules.items()}
        return JobSpec(
            plan_id=self._plan.id,
            item=item,
            number=number,
            spec=self._spec(item, paths, folder),
            inputs_hash=self._inputs(item, [found.detail for found in capsules.values()]),
            runner=self._context.runner,
            capsules=tuple((name, found.detail) for name, found in capsules.items()),
        )

    def _spec(self, item: PlannedJob, capsules: dict[str, Path], out: Path) -> RunSpec:
        spec = self._context.spec(item, capsules, out)
        return spec.model_copy(update={"variant": "pgo" if self._pgo(item) else "plain"})

    def _inputs(self, item: PlannedJob, capsules: list[str]) -> str:
        """Of everything that decides the result, as it is now: files may be edited meanwhile."""
        plan, sources = self._plan, self._context.sources()
        self._seen.add(sources)
        return digest([item.id, sources, plan.config_digest, dict(plan.tools), capsules])

    def _fresh_folder(self, item: PlannedJob, number: int) -> Path:
        """Never one that another process may still be writing to."""
        parent = plan_folder(self._store, self._plan.id) / folder_name(item)
        taken = 0
        while True:
            folder = parent / (str(number) if not taken else f"{number}.{taken}")
            if not folder.exists():
                return folder
            taken += 1

    def _keep(self, attempt: Attempt) -> None:
        self._store.add_attempt(attempt)
        self._numbers[attempt.item_id] += 1

    def _unaffordable(self, item: PlannedJob) -> Attempt:
        reason = "left out by --budget"
        return skipped(self._plan.id, item, self._next(item), SkipCause.BUDGET, reason)


def _folder(prepared: PrepareResult) -> Path:
    assert prepared.folder is not None  # a capsule that is ok has one
    return prepared.folder


def folder_name(item: PlannedJob) -> str:
    """A name that a reader finds: 00012-replay-qwen_layer-default-s1-2of4."""
    array = None if item.array == "rtl" else item.array
    backend = None if item.backend == "rtl" else item.backend
    shard = None if item.shard is None else f"{item.shard.index + 1}of{item.shard.count}"
    what = [f"{item.ordinal:05}", item.test, item.workload, item.config]
    words = [*what, item.mode, array, backend, f"s{item.seed}", shard]
    return "-".join(word for word in words if word)


def mixed_sources(preparations: Iterable[PreparationRecord]) -> bool:
    """Whether the sources changed while the plan ran."""
    return any(row.name == SOURCES_STEP and not row.ok for row in preparations)


def missing(item_results: Iterable[ItemResult]) -> tuple[PlannedJob, ...]:
    """What a resumed plan still has to run."""
    return tuple(item_result.item for item_result in item_results if item_result.missing)


def failed(item_results: Iterable[ItemResult]) -> tuple[PlannedJob, ...]:
    """What --only-failed runs: whose last attempt is red."""
    return tuple(o.item for o in item_results if o.last is not None and o.last.red)
