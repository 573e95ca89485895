# SPDX-License-Identifier: Apache-2.0
"""The whole dashboard: one folder of static pages that open from disk, without any network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from regress.baseline import Move
from regress.nightly.model import Preparation
from regress.pages.failure import write_failures
from regress.pages.figures import Figures
from regress.pages.heatmap import cells, heat_map
from regress.pages.models import models_of
from regress.pages.night import Job, Night
from regress.pages.render import write_page, write_style
from regress.pages.trend import Series, trend
from regress.triage import Triage

INDEX_FILE = "index.html"
_MOST_JOBS = 20
"""Jobs of one bucket that have pages: the others fail in the same way."""
_MOST_CYCLES = 6
"""Lines in the trend of cycles: those of the most cycles."""


@dataclass(frozen=True)
class Told:
    """What the pages of one night say."""

    night: Night
    triage: Triage
    moves: tuple[Move, ...]
    recorded: bool
    """Whether the tier has a baseline at all."""
    preparations: tuple[Preparation, ...]
    figures: tuple[Figures, ...]
    """Of this night and those before it, oldest first."""


def write_site(site: Path, told: Told) -> None:
    """Write every page. InputError when the place cannot be written."""
    write_style(site)
    night = told.night
    jobs = {job.item.id: job for job in night.jobs}
    failures = _write_failures(site, told, jobs)
    pages: dict[str, dict[str, object]] = {
        "index": {"told": told, "jobs": jobs, "failures": failures},
        "jobs": {"night": night, "failures": failures},
        "trends": {"pictures": list(_trends(told.figures)), "figures": told.figures},
        "heatmap": _heatmap(night),
        "models": {"models": models_of(site, night)},
    }
    for name, values in pages.items():
        values |= {"root": "", "here": f"{name}.html", "plan": night.plan, "day": night.day}
        write_page(site / f"{name}.html", f"{name}.html.j2", **values)


def _write_failures(site: Path, told: Told, jobs: Mapping[str, Job]) -> dict[str, str]:
    """Pages of the failures, of the first jobs of each bucket; item id → the job's first page."""
    found: dict[str, str] = {}
    for bucket in told.triage.buckets:
        for red in bucket.reds[:_MOST_JOBS]:
            job = jobs[red.item.id]
            pages = list(write_failures(site, told.night.plan, job))
            found[job.item.id] = str(pages[0].relative_to(site))
    return found


def _trends(figures: Sequence[Figures]) -> Iterator[tuple[str, Markup]]:
    days = [one.day for one in figures]
    if not figures:
        return
    rates = tuple(None if f.pass_rate is None else 100 * f.pass_rate for f in figures)
    yield "Pass rate", trend("Pass rate", days, [Series("passed", rates)], " %", 100)
    yield "Cycles of jobs that passed", trend("Cycles", days, list(_cycles(figures)))
    hours = [
        Series("job time", tuple(f.job_seconds / 60 for f in figures)),
        Series("CPU time", tuple(f.cpu_seconds / 60 for f in figures)),
    ]
    yield "Time", trend("Time", days, hours, " min")
    covered = [Series("op × type × configuration", tuple(float(f.coverage) for f in figures))]
    yield "Coverage: combinations judged on the RTL", trend("Coverage", days, covered)
    shares = tuple(None if f.npu_share is None else 100 * f.npu_share for f in figures)
    on_npu = [Series("on the NPU", shares)]
    yield "Ops on the NPU", trend("Ops on the NPU", days, on_npu, " %", 100)


def _cycles(figures: Sequence[Figures]) -> Iterator[Series]:
    latest = figures[-1].cycles_of
    for name in sorted(latest, key=lambda key: -latest[key])[:_MOST_CYCLES]:
        values = tuple(f.cycles_of.get(name) for f in figures)
        yield Series(name, tuple(None if v is None else float(v) for v in values))


def _heatmap(night: Night) -> dict[str, object]:
    found = cells(night.rows())
    ops = sorted({op for op, _ in found})
    configs = sorted({config for _, config in found})
    picture = heat_map(ops, configs, found) if found else None
    return {"picture": picture, "ops": ops, "configs": configs, "cells": found}
