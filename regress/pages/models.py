# SPDX-License-Identifier: Apache-2.0
"""What each model's night was: where its ops ran, how close to the roof, and when each op ran."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from driver.config import load_config
from driver.errors import InputError
from driver.results import OpRow, RunResult, write_text
from regress.pages.timeline import perfetto, timeline
from regress.results.night import Night, StoredJob
from regress.run_report.curves import draw as draw_curves
from regress.run_report.roofline import draw, points

FOLDER = "traces"
_NO_WORD = re.compile(r"[^\w.]+")


@dataclass(frozen=True)
class OpPlacement:
    """How often an op of a model ran where, and why not on the NPU."""

    op: str
    rtl: int
    cmodel: int
    cpu: int
    reason: str


@dataclass(frozen=True)
class ModelRun:
    """A model as one test ran it on one configuration."""

    name: str
    """Test, configuration and mode."""
    rows: tuple[OpRow, ...]
    cycles: int
    utilisation: float | None
    roofline: Markup | None
    timeline: Markup | None
    trace: str
    """Of Perfetto, relative to the site; empty where nothing was timed."""

    @property
    def anchor(self) -> str:
        """Its place on the page."""
        return slug(self.name)


@dataclass(frozen=True)
class ModelSection:
    """A captured model as the night met it."""

    name: str
    ledger: tuple[OpPlacement, ...]
    runs: tuple[ModelRun, ...]


def slug(text: str) -> str:
    """A text as a part of an address or of a file's name."""
    return _NO_WORD.sub("-", text).strip("-")


def models_of(site: Path, night: Night) -> tuple[ModelSection, ...]:
    """The models of a night, by name. Leaves their traces in the site's folder."""
    found: dict[str, list[tuple[StoredJob, OpRow]]] = {}
    for job, row in night.rows():
        name = model_name(row)
        if name and job.spec is not None and job.spec.capsules:  # random graphs are no models
            found.setdefault(name, []).append((job, row))
    return tuple(
        ModelSection(name, _ledger(pairs), _runs(site, name, pairs))
        for name, pairs in sorted(found.items())
    )


def trainings_of(night: Night) -> tuple[Markup, ...]:
    """The curves of the night's trainings, each job's in one picture."""
    return tuple(
        Markup(draw_curves(job.result.curves, _where(job)))  # noqa: S704 (escapes itself)
        for job in night.jobs
        if job.result is not None and job.result.curves
    )


def _where(job: StoredJob) -> str:
    return f"on {job.item.backend}, CONFIG={job.item.config} SEED={job.item.seed}"


def model_name(row: OpRow) -> str:
    """The model that an op belongs to; empty for a directed case."""
    return row.module.partition(":")[0] if row.source else ""


def _ledger(pairs: Iterable[tuple[StoredJob, OpRow]]) -> tuple[OpPlacement, ...]:
    pairs = list(pairs)
    counts = Counter((row.op, row.where) for _, row in pairs)
    reasons: dict[str, str] = {}
    for result in {id(job.result): job.result for job, _ in pairs}.values():
        reasons |= _reasons(result)
    rows = [
        OpPlacement(
            op, counts[op, "rtl"], counts[op, "cmodel"], counts[op, "cpu"], reasons.get(op, "")
        )
        for op in {op for op, _ in counts}
    ]
    return tuple(sorted(rows, key=lambda ran: (-ran.cpu, ran.op)))


def _reasons(result: RunResult | None) -> dict[str, str]:
    rows = () if result is None else result.ledger
    return {row.op: row.reason for row in rows if row.where == "cpu"}


def _runs(site: Path, name: str, pairs: Sequence[tuple[StoredJob, OpRow]]) -> tuple[ModelRun, ...]:
    """One per test, configuration and mode: of the first seed on the RTL, all its shards."""
    items = [job.item for job, _ in pairs if job.item.backend == "rtl"]
    runs = []
    for series in dict.fromkeys(item.series for item in items):
        seed = min(item.seed for item in items if item.series == series)
        own = [pair for pair in pairs if (pair[0].item.series, pair[0].item.seed) == (series, seed)]
        runs.append(_run(site, name, own))
    return tuple(runs)


def _run(site: Path, name: str, pairs: Sequence[tuple[StoredJob, OpRow]]) -> ModelRun:
    job = pairs[0][0]
    rows = tuple(sorted((row for _, row in pairs), key=lambda row: row.index))
    timed = [row for row in rows if row.cycles]
    cycles = sum(row.cycles or 0 for row in timed)
    used = sum((row.utilisation or 0.0) * (row.cycles or 0) for row in timed)
    return ModelRun(
        name=job.item.series,
        rows=rows,
        cycles=cycles,
        utilisation=used / cycles if cycles else None,
        roofline=_roofline(name, job, rows),
        timeline=timeline(rows) if timed else None,
        trace=_trace(site, name, job, rows) if timed else "",
    )


def _roofline(name: str, job: StoredJob, rows: Sequence[OpRow]) -> Markup | None:
    """The picture; None where no product was measured or the configuration is gone."""
    if job.spec is None:
        return None
    try:
        config = load_config(job.spec.config_file, job.item.config)
    except InputError:
        return None
    found = [point for point in points(rows, config.array_size) if point.rate >= 1]
    if not found:
        return None
    return Markup(draw(config, found, f"{name} on {config.name}"))  # noqa: S704 (escapes itself)


def _trace(site: Path, name: str, job: StoredJob, rows: Sequence[OpRow]) -> str:
    assert job.result is not None
    path = f"{FOLDER}/{name}-{slug(job.item.series)}.json"
    write_text(site / path, perfetto(job.result.model_copy(update={"ops": tuple(rows)})))
    return path
