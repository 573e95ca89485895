# SPDX-License-Identifier: Apache-2.0
"""One test cut into shards: several processes, each result kept, an interrupted run resumed.

The same plan, store and runner as the tiers; the folder of the run is the store. What comes out is
the result that one process would have left.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from rich.console import Console

from driver.errors import InfrastructureError, InputError, ProcessRefused
from driver.results import RESULT_FILE, RunResult, RunSpec, Shard, read_json, write_json
from driver.test_info import TestInfo
from regress.console import print_line
from regress.folder import fresh, locked
from regress.invoke import INTERRUPTED
from regress.nightly.display import PlanDisplay
from regress.nightly.estimate import expected_seconds, stored_seconds
from regress.nightly.merge import merged
from regress.nightly.pool import LocalPool
from regress.nightly.request import COMMAND_LINE, TierRequest, new_plan
from regress.nightly.run_plan import PlanContext, PlanRunner, missing
from regress.nightly.scheduler import RunControl, interruptible
from regress.results.model import ItemResult, JobStatus, Plan, PlannedJob, digest
from regress.results.night import unaltered
from regress.results.store import Store
from regress.run import EXIT_CODES, OWN_NAMES
from regress.run_report.junit import JUNIT_FILE, write_junit

_CAPSULE = "capsule.json"


@dataclass(frozen=True)
class ShardOptions:
    """How a test is cut."""

    shards: int | None
    """None with `resume`: as many as before."""
    jobs: int
    """Processes at once."""
    resume: bool = False
    """Run what is missing of the last run in this folder."""


@dataclass(frozen=True)
class ShardedResult:
    """What a run in shards leaves; no result when it was interrupted."""

    result: RunResult | None
    exit_code: int


def run_sharded(
    console: Console,
    spec: RunSpec,
    info: TestInfo,
    how: ShardOptions,
    context: PlanContext | None = None,
) -> ShardedResult:
    """Run `spec` in shards, in its folder. InputError when there is nothing to resume;
    ProcessRefused when every shard refuses the command line, as of more shards than ops."""
    _check(spec)
    prepared = info.model_copy(update={"workloads": ()})  # the capsules are in the spec already
    context = context or PlanContext(spec.config_file, {info.name: prepared})
    context = replace(context, base=spec)
    started = time.monotonic()
    with (
        locked(spec.out, "OUT"),
        fresh(spec.out, OWN_NAMES),
        Store.open(spec.out) as store,
    ):
        plan, items = _planned(store, spec, how, context.sources())
        control = RunControl()
        note = partial(print_line, console)
        run = PlanRunner(store, plan, context, control, note)
        expected = expected_seconds(stored_seconds(store))
        with interruptible(control, note):
            ready = run.prepare(items)
            pool = LocalPool(store.folder, how.jobs)
            with PlanDisplay(console, info.name, ready, pool.slots, expected) as display:
                run.run(ready, pool, display)
        item_results = store.item_results(plan.id)
        if missing(item_results) and control.drain:
            note("interrupted: the same command with --resume runs the rest")
            return ShardedResult(None, INTERRUPTED)
        result = _merged(store, spec, item_results, time.monotonic() - started)
        if not run.check_sources():
            message = "the sources changed while its shards ran"
            result = result.model_copy(update={"status": "error", "message": message})
        write_json(spec.out / RESULT_FILE, result)
        write_junit(result, spec.out / JUNIT_FILE)
    return ShardedResult(result, EXIT_CODES[result.status])


# ---------------------------------------------------------------------- planning
def _check(spec: RunSpec) -> None:
    """InputError for a run that cannot be cut."""
    if "chained" in spec.modes:
        expected = "isolated: each op of a chain needs the results before it"
        raise InputError(COMMAND_LINE, "mode", ", ".join(spec.modes), expected)
    for option, given in {"--op": spec.op_filter, "--shard": spec.shard}.items():
        if given is not None:
            raise InputError(
                COMMAND_LINE, option, given, "the whole test with --shards or --resume"
            )


def _items(spec: RunSpec, shards: int) -> tuple[PlannedJob, ...]:
    return tuple(
        PlannedJob(
            test=spec.test,
            config=spec.config,
            seed=spec.seed,
            backend=spec.backend,
            array=spec.array,
            allow_cpu=spec.allow_cpu,
            shard=Shard(index=index, count=shards),
            wall_s=spec.timeout_s,
            ordinal=index,
        )
        for index in range(shards)
    )


def _planned(
    store: Store, spec: RunSpec, how: ShardOptions, sources: str
) -> tuple[Plan, tuple[PlannedJob, ...]]:
    if how.resume:
        plan = _resumable(store, _fresh(store, spec, sources))
        item_results = store.item_results(plan.id)
        if how.shards not in (None, len(item_results)):
            raise InputError(
                COMMAND_LINE, "--shards", how.shards, f"{len(item_results)}, as before"
            )
        return plan, missing(item_results)
    items = _items(spec, how.shards or 1)
    return store.add_plan(_fresh(store, spec, sources), items), items


def _fresh(store: Store, spec: RunSpec, sources: str) -> Plan:
    tier = f"run-{_identity(spec)}"
    request = TierRequest(tier, folder=store.folder, config_file=spec.config_file)
    return new_plan(request, spec.seed, sources)


_NO_IDENTITY = {"out", "config_file", "capsules", "timeout_s", "variant"}


def _identity(spec: RunSpec) -> str:
    """Equal for specs that ask for the same: paths do not matter, capsules' contents do."""
    plain = spec.model_dump(mode="json", exclude=_NO_IDENTITY)
    return digest([plain, {name: _content(path) for name, path in spec.capsules.items()}], 12)


def _content(folder: Path) -> str:
    try:
        return hashlib.sha256((folder / _CAPSULE).read_bytes()).hexdigest()
    except OSError as error:
        raise InputError(folder, _CAPSULE, error.strerror, "a capsule") from error


def _resumable(store: Store, fresh: Plan) -> Plan:
    """The stored plan that asks for what `fresh` does, of the same sources."""
    plans = store.plans(tier=fresh.tier, limit=1)
    if not plans or (plans[0].sources, plans[0].config_digest) != (
        fresh.sources,
        fresh.config_digest,
    ):
        expected = "a run of the same test, options and sources"
        found = "other sources" if plans else "none"
        raise InputError(store.folder, "run to resume", found, expected)
    return plans[0]


# ---------------------------------------------------------------------- result
def _merged(
    store: Store, spec: RunSpec, item_results: list[ItemResult], seconds: float
) -> RunResult:
    reasons = {result.last.reason for result in item_results if result.last is not None}
    if len(reasons) == 1 and (reason := reasons.pop()).startswith(f"{COMMAND_LINE}: "):
        raise ProcessRefused(reason)
    results = []
    for item_result in item_results:
        last = item_result.last
        if last is None:
            raise InfrastructureError(f"{item_result.item.label} was planned and did not run")
        found = last.artefact(RESULT_FILE)
        if last.status not in (JobStatus.PASS, JobStatus.FAIL) or found is None:
            results.append(_broken(spec, f"shard {item_result.item.shard}: {last.reason}"))
        else:
            path = store.path(found.path)
            if not unaltered(path, found):
                raise InputError(path, "file", "another one", "what its shard left, or a new run")
            results.append(read_json(path, RunResult))
    return merged(spec, results, seconds)


def _broken(spec: RunSpec, message: str) -> RunResult:
    """A shard without a verdict."""
    return RunResult(
        test=spec.test,
        status="error",
        config=spec.config,
        seed=spec.seed,
        backend=spec.backend,
        array=spec.array,
        simulator=spec.simulator,
        mutant=spec.mutant,
        cycles=None,
        wall_seconds=0.0,
        reproduce="",
        message=message,
        ops=(),
        ledger=(),
    )
