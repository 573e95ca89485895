# SPDX-License-Identifier: Apache-2.0
"""What the user asks of a tier, and the plan that comes of it: a new one, or the rest of one."""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from driver.config import load_configs
from driver.errors import InputError
from driver.filelist import read_by, read_filelist
from regress.nightly import provenance
from regress.nightly.plan import AvailableNames, numbered, selected, tier_items
from regress.nightly.run_plan import PlanContext, failed, missing
from regress.nightly.settings import NightlyConfig
from regress.paths import CONFIG_FILE, NIGHTLY
from regress.results.model import Plan, PlannedJob
from regress.results.store import Store

COMMAND_LINE = "command line"


@dataclass(frozen=True)
class TierRequest:
    """The options of `npu-cosim nightly`."""

    tier: str
    resume: bool = False
    only_failed: bool = False
    dry_run: bool = False
    filter: str | None = None
    reseed: int | None = None
    budget_s: float | None = None
    jobs: int | None = None
    scheduler: str | None = None
    """Address of a dask scheduler; None runs on this machine."""
    store_url: str | None = None
    folder: Path = NIGHTLY
    config_file: Path = CONFIG_FILE
    command: str = ""

    def check(self) -> None:
        """InputError for options that contradict each other."""
        given = {"--reseed": self.reseed, "--filter": self.filter}
        for option, value in given.items():
            if self.resume and value is not None:
                expected = "neither with --resume: a plan is resumed as it was made"
                raise InputError(COMMAND_LINE, option, value, expected)


def planned(
    store: Store, request: TierRequest, settings: NightlyConfig, context: PlanContext
) -> tuple[Plan, tuple[PlannedJob, ...]]:
    """The plan and what to run of it; a plan without sequence is not stored yet."""
    if request.resume:
        return _resumed(store, request, context.sources())
    last = latest(store, request.tier) if request.only_failed else None
    seed = request.reseed
    if seed is None:
        seed = settings.seed if last is None else last.seed
    items = tier_jobs(request, settings, context, seed)
    if last is not None:
        red = {item.id for item in failed(store.item_results(last.id))}
        items = tuple(item for item in items if item.id in red)
        if not items:
            expected = f"a red job in plan {last.id}"
            raise InputError(COMMAND_LINE, "--only-failed", "nothing to run", expected)
    if request.filter is not None:
        items = selected(items, request.filter)
    return new_plan(request, seed, context.sources()), numbered(items, request.config_file)


def tier_jobs(
    request: TierRequest, settings: NightlyConfig, context: PlanContext, seed: int | None = None
) -> tuple[PlannedJob, ...]:
    """All jobs of the tier. InputError for a name that there is not."""
    known = AvailableNames(
        request.config_file, load_configs(request.config_file), context.tests, _workloads()
    )
    first = request.reseed if seed is None else seed
    return tier_items(settings, request.tier, known, first)


def new_plan(request: TierRequest, seed: int, sources: str) -> Plan:
    """A plan of the sources as they are, not stored yet."""
    revision, dirty = provenance.revision()
    now = datetime.now(UTC)
    return Plan(
        id=f"{now:%Y%m%d-%H%M%S}-{request.tier}-{uuid.uuid4().hex[:6]}",
        tier=request.tier,
        created_utc=now.isoformat(timespec="seconds"),
        seed=seed,
        revision=revision,
        dirty=dirty,
        tools=provenance.tools(),
        config_file=str(request.config_file.absolute()),
        config_digest=_digest(request.config_file),
        command=request.command,
        sources=sources,
        partial=request.only_failed or request.filter is not None,
    )


def latest(store: Store, tier: str) -> Plan:
    """The newest plan of a tier. InputError when there is none."""
    plans = store.plans(tier=tier, limit=1)
    if not plans:
        raise no_plan(store.folder, tier)
    return plans[0]


def no_plan(folder: Path, tier: str) -> InputError:
    """What to raise where a former plan is asked for and there is none."""
    return InputError(folder, f"plan of {tier}", "none", "one that was started before")


def _resumed(
    store: Store, request: TierRequest, sources: str
) -> tuple[Plan, tuple[PlannedJob, ...]]:
    """The newest plan, which must be of the present sources: one plan, one state of the design."""
    plan = latest(store, request.tier)
    if (plan.sources, plan.config_digest) != (sources, _digest(request.config_file)):
        expected = f"those of plan {plan.id} (revision {plan.revision[:12]}), or a new plan"
        raise InputError(COMMAND_LINE, "--resume", "other sources", expected)
    now = provenance.tools()
    differing = sorted(name for name, then in plan.tools.items() if now.get(name) != then)
    other = [f"{name} {now.get(name)}" for name in differing]
    if other:
        expected = f"the tools of plan {plan.id}, or a new plan"
        raise InputError(COMMAND_LINE, "--resume", ", ".join(other), expected)
    item_results = store.item_results(plan.id)
    wanted = set(missing(item_results) + (failed(item_results) if request.only_failed else ()))
    return plan, tuple(
        item_result.item for item_result in item_results if item_result.item in wanted
    )


def _digest(file: Path) -> str:
    """Of the file of configurations, and of the RTL that it names with all that this reads."""
    lists = {config.filelist for config in load_configs(file).values() if config.filelist}
    state = hashlib.sha256(file.read_bytes())
    for filelist in sorted(lists):
        listed = read_filelist(filelist)
        for source in (*listed, *read_by(listed)):
            state.update(hashlib.sha256(source.read_bytes()).digest())
    return state.hexdigest()


def _workloads() -> tuple[str, ...]:
    from regress.capsules import known_workloads  # noqa: PLC0415 (numpy, safetensors)

    return known_workloads()
