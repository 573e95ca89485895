# SPDX-License-Identifier: Apache-2.0
"""The whole dashboard: one folder of static pages that open from disk, without any network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from markupsafe import Markup

from regress.analysis.metrics import NightMetrics
from regress.analysis.night_report import NightReport
from regress.pages.failure import write_failures
from regress.pages.heatmap import cells, heat_map
from regress.pages.models import models_of, trainings_of
from regress.pages.render import write_page, write_style
from regress.pages.trend import TrendSeries, trend
from regress.results.night import Night, StoredJob

_MOST_JOBS = 20
"""Jobs of one bucket that have pages: the others fail in the same way."""
_MOST_CYCLES = 6
"""Lines in the trend of cycles: those of the most cycles."""


def write_site(report: NightReport) -> None:
    """Write every page. InputError when the place cannot be written."""
    site, night = report.site, report.night
    write_style(site)
    jobs = night.jobs_by_item
    failures = _write_failures(report, jobs)
    pages: dict[str, dict[str, object]] = {
        "index": {"report": report, "jobs": jobs, "failures": failures},
        "jobs": {"night": night, "failures": failures},
        "trends": {"pictures": list(_trends(report.metrics)), "metrics": report.metrics},
        "heatmap": _heatmap(night),
        "models": {"models": models_of(site, night), "trainings": trainings_of(night)},
    }
    for name, values in pages.items():
        values |= {"root": "", "here": f"{name}.html", "plan": night.plan, "day": night.day}
        write_page(site / f"{name}.html", f"{name}.html.j2", **values)


def _write_failures(report: NightReport, jobs: Mapping[str, StoredJob]) -> dict[str, str]:
    """Pages of the failures, of the first jobs of each bucket; item id → the job's first page."""
    found: dict[str, str] = {}
    for bucket in report.triage.buckets:
        for failed in bucket.jobs[:_MOST_JOBS]:
            job = jobs[failed.item.id]
            pages = list(write_failures(report.site, report.night.plan, job))
            found[job.item.id] = str(pages[0].relative_to(report.site))
    return found


def _trends(figures: Sequence[NightMetrics]) -> Iterator[tuple[str, Markup]]:
    days = [one.day for one in figures]
    if not figures:
        return
    rates = tuple(None if f.pass_rate is None else 100 * f.pass_rate for f in figures)
    yield "Pass rate", trend("Pass rate", days, [TrendSeries("passed", rates)], " %", 100)
    yield "Cycles of jobs that passed", trend("Cycles", days, list(_cycles(figures)))
    hours = [
        TrendSeries("job time", tuple(f.job_seconds / 60 for f in figures)),
        TrendSeries("CPU time", tuple(f.cpu_seconds / 60 for f in figures)),
    ]
    yield "Time", trend("Time", days, hours, " min")
    covered = [TrendSeries("op × type × configuration", tuple(float(f.coverage) for f in figures))]
    yield "Coverage: combinations judged on the RTL", trend("Coverage", days, covered)
    shares = tuple(None if f.npu_share is None else 100 * f.npu_share for f in figures)
    on_npu = [TrendSeries("on the NPU", shares)]
    yield "Ops on the NPU", trend("Ops on the NPU", days, on_npu, " %", 100)


def _cycles(figures: Sequence[NightMetrics]) -> Iterator[TrendSeries]:
    latest = figures[-1].cycles_of
    for name in sorted(latest, key=lambda key: -latest[key])[:_MOST_CYCLES]:
        values = tuple(f.cycles_of.get(name) for f in figures)
        yield TrendSeries(name, tuple(None if v is None else float(v) for v in values))


def _heatmap(night: Night) -> dict[str, object]:
    found = cells(night.rows())
    ops = sorted({op for op, _ in found})
    configs = sorted({config for _, config in found})
    picture = heat_map(ops, configs, found) if found else None
    return {"picture": picture, "ops": ops, "configs": configs, "cells": found}
