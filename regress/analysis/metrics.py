# SPDX-License-Identifier: Apache-2.0
"""The numbers of a night that trends are drawn from, kept beside the pages of that night."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from pydantic import Field

from driver.errors import InputError
from driver.frozen import Frozen
from driver.results import Count, read_json, write_json
from regress.results.model import JobStatus
from regress.results.night import Night

FOLDER = "nights"
COVERAGE = "coverage: op × type × configuration judged on the RTL"
NPU_SHARE = "share of ops that ran on the NPU"


class NightMetrics(Frozen):
    """One night in numbers."""

    plan_id: str
    sequence: Count
    tier: str
    day: str
    revision: str
    states: dict[str, Count]
    """Status → items; "missing" for those without an attempt."""
    pass_rate: Annotated[float, Field(ge=0, le=1)] | None
    """Of the items with a verdict."""
    cycles: Count
    """Simulated, all jobs together."""
    cycles_of: dict[str, Count]
    """`test config` → cycles of its jobs that passed."""
    job_seconds: Annotated[float, Field(ge=0)]
    cpu_seconds: Annotated[float, Field(ge=0)]
    ops: Count
    coverage: Count
    """Combinations of op, type and configuration that were judged on the RTL."""
    npu_share: Annotated[float, Field(ge=0, le=1)] | None
    """Of the ops that a model asked for, how many did not fall back to the CPU."""

    def ratchets(self) -> dict[str, float]:
        """Those that may not fall."""
        found = {COVERAGE: float(self.coverage)}
        return found if self.npu_share is None else {**found, NPU_SHARE: round(self.npu_share, 6)}


def metrics_of(night: Night) -> NightMetrics:
    """Count a night."""
    states = {"missing" if s is None else s.value: n for s, n in night.statuses().items()}
    judged = [
        job.attempt for job in night.jobs if job.attempt.status in (JobStatus.PASS, JobStatus.FAIL)
    ]
    passed = sum(attempt.status is JobStatus.PASS for attempt in judged)
    rows = list(night.rows())
    on_npu = sum(row.where != "cpu" for _, row in rows)
    return NightMetrics(
        plan_id=night.plan.id,
        sequence=night.plan.sequence,
        tier=night.plan.tier,
        day=night.day,
        revision=night.plan.revision,
        states=states,
        pass_rate=passed / len(judged) if judged else None,
        cycles=sum(job.attempt.cycles or 0 for job in night.jobs),
        cycles_of=_cycles_of(night),
        job_seconds=sum(job.attempt.seconds for job in night.jobs),
        cpu_seconds=sum(job.attempt.cpu_seconds or 0.0 for job in night.jobs),
        ops=len(rows),
        coverage=len({(r.op, r.dtype, j.item.config) for j, r in rows if r.where == "rtl"}),
        npu_share=on_npu / len(rows) if rows else None,
    )


def _cycles_of(night: Night) -> dict[str, int]:
    found: dict[str, int] = {}
    for job in night.jobs:
        if job.attempt.status is JobStatus.PASS and job.attempt.cycles is not None:
            name = f"{job.item.workload or job.item.test} {job.item.config}"
            found[name] = found.get(name, 0) + job.attempt.cycles
    return found


def store_metrics(site: Path, figures: NightMetrics) -> None:
    """Write a night's numbers."""
    write_json(site / FOLDER / f"{figures.plan_id}.json", figures)


def stored_metrics(site: Path, plan_ids: Iterable[str]) -> list[NightMetrics]:
    """The numbers of these nights, in their order; a night without is left out."""
    found = []
    for plan_id in plan_ids:
        try:
            found.append(read_json(site / FOLDER / f"{plan_id}.json", NightMetrics))
        except InputError:
            continue
    return found
