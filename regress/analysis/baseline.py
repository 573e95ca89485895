# SPDX-License-Identifier: Apache-2.0
"""Baselines: what each op cost, which bits each job gave and which jobs passed when last recorded.

Owns regress/baselines/TIER.json, one line per op, so that a change of cost shows in a review.
Cycles are exact: equal sources give equal numbers. Beyond the tolerances of sim_config.yaml a loss
is red, and a gain asks to be recorded. Other bits on equal inputs are red.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from driver.config import refuse
from driver.errors import InputError
from driver.frozen import Frozen
from driver.results import Count, OpRow, RunResult, read_json, write_text
from regress.nightly.prepare import CAPSULE_STEP
from regress.nightly.settings import Tolerances
from regress.paths import ROOT
from regress.results.model import JobStatus, PlannedJob, digest
from regress.results.night import Night, StoredJob, sizes_of

FOLDER = ROOT / "regress" / "baselines"
_INPUTS_CHARACTERS = 12
_ROUNDING = 1e-9
"""Of the comparison itself: exactly 1 % is within 1 %."""


class OpBaseline(Frozen):
    """What one op of a job cost."""

    cycles: Count
    utilisation: Annotated[float, Field(ge=0)] | None


class JobBaseline(Frozen):
    """What one job gave."""

    digest: str | None
    """Of the bits of all its results; None for a test that has no such results."""
    inputs: str
    """Of the capsules that it ran on and of the list of its ops: only where both are equal must the
    bits be equal. A new op sample is no other result."""
    seconds: Annotated[float, Field(ge=0)]
    """How long it took, for estimates of machines without a record; never compared."""
    compared: Count | None = None
    """Elements, or what else its rows count; None: recorded before this was."""
    rows: Count | None = None
    """Ops, or what else it has a row for; None: recorded before this was."""


class TierBaseline(Frozen):
    """A tier's numbers as they were recorded."""

    schema_version: Literal[1] = 1
    tier: str
    passing: tuple[str, ...]
    """Labels of the jobs that passed."""
    jobs: dict[str, JobBaseline] = Field(default_factory=dict)
    """Label → what it gave, for the jobs that passed."""
    ops: dict[str, OpBaseline]
    """`label | index op dtype shapes` → cost."""
    figures: dict[str, float] = Field(default_factory=dict)
    """Of the whole night: coverage and the like, larger is better."""

    @model_validator(mode="after")
    def _of_passes(self) -> TierBaseline:
        """Whatever is recorded is of a job that passed: else nothing would be compared with it."""
        labels = set(self.passing)
        for field, names in (("jobs", self.jobs), ("ops", self.ops)):
            for name in names:
                label, _, rest = name.partition(" | ")
                if label not in labels:
                    refuse(field, name, "of a job in passing")
                if field == "ops" and not rest.partition(" ")[0].isdecimal():
                    refuse(field, name, "`label | index op dtype shapes`")
        return self


class ChangeKind(StrEnum):
    """How a number moved."""

    WORSE = "worse"
    """Beyond the tolerance, in the wrong direction: the night is red."""
    BETTER = "better"
    """Beyond the tolerance, in the right direction: record it, or it will be lost unnoticed."""
    LOST = "no longer passes"
    """A job that passed no longer does."""
    GONE = "no longer measured"
    """A job that the tier no longer has, or an op of one that passes, as before, but without a cost
    on the RTL."""
    GAINED = "gained"
    """A job or an op that is not recorded yet."""
    BITS = "other bits"
    """A job that gave other bits on equal inputs."""

    @property
    def red(self) -> bool:
        """Whether it fails the night."""
        return self not in (ChangeKind.BETTER, ChangeKind.GAINED)


@dataclass(frozen=True)
class BaselineChange:
    """One number against its baseline."""

    kind: ChangeKind
    what: str
    measure: str
    before: float | None
    now: float | None

    @property
    def change(self) -> float | None:
        """Relative to before."""
        if self.before is None or self.now is None or not self.before:
            return None
        return self.now / self.before - 1

    def __str__(self) -> str:
        if self.before is None or self.now is None:
            return f"{self.kind.value}: {self.what}"
        change = "" if self.change is None else f" ({self.change:+.1%})"
        return (
            f"{self.kind.value}: {self.what}: {self.measure} {self.before:g} → {self.now:g}{change}"
        )


def path_of(tier: str, folder: Path = FOLDER) -> Path:
    """The file of a tier."""
    return folder / f"{tier}.json"


def load(tier: str, folder: Path = FOLDER) -> TierBaseline | None:
    """The recorded numbers of a tier; None when there are none. InputError when damaged."""
    path = path_of(tier, folder)
    found = read_json(path, TierBaseline) if path.exists() else None
    if found is not None and found.tier != tier:
        raise InputError(path, "tier", found.tier, f"{tier}, as the file is named")
    return found


def recorded_seconds(folder: Path = FOLDER) -> dict[str, float]:
    """Label → s that a job took when a baseline was recorded, over all tiers."""
    tiers = [read_json(path, TierBaseline) for path in sorted(folder.glob("*.json"))]
    return {label: job.seconds for tier in tiers for label, job in tier.jobs.items()}


def measure(night: Night, figures: Mapping[str, float] | None = None) -> TierBaseline:
    """The numbers of a night, of what ran on the RTL and passed. A pass of which no result can be
    read is none."""
    ops: dict[str, OpBaseline] = {}
    jobs: dict[str, JobBaseline] = {}
    passing = []
    for job in night.jobs:
        if job.attempt.status is JobStatus.PASS and job.result is not None:
            passing.append(job.item.label)
            jobs[job.item.label] = _job_baseline(night, job)
            ops.update(_costs(job.item, job.result))
    return TierBaseline(
        tier=night.plan.tier,
        passing=tuple(sorted(passing)),
        jobs=jobs,
        ops=ops,
        figures=dict(figures or {}),
    )


def _job_baseline(night: Night, job: StoredJob) -> JobBaseline:
    capsules = {row.name: row.detail for row in night.preparations}
    spec, result = job.spec, job.result
    names = () if spec is None else spec.capsules
    workloads = [job.item.workload if name == "capsule" else name for name in names]
    used = [capsules.get(f"{CAPSULE_STEP} {name} {job.item.seed}", "") for name in workloads]
    ops = [] if result is None else [_name(row) for row in result.ops]
    return JobBaseline(
        digest=None if result is None else result.digest,
        inputs=digest([*used, *ops], _INPUTS_CHARACTERS),
        seconds=round(job.attempt.seconds),
        compared=None if result is None else sum(row.elements_compared for row in result.ops),
        rows=None if result is None else len(result.ops),
    )


def _costs(item: PlannedJob, result: RunResult | None) -> Iterator[tuple[str, OpBaseline]]:
    for row in () if result is None else result.ops:
        if row.cycles is None or row.where != "rtl":
            continue
        use = None if row.utilisation is None else round(row.utilisation, 6)
        yield f"{item.label} | {_name(row)}", OpBaseline(cycles=row.cycles, utilisation=use)


def _name(row: OpRow) -> str:
    return f"{row.index} {row.op} {row.dtype} {sizes_of(row)}"


def compare(
    before: TierBaseline,
    now: TierBaseline,
    tried: Iterable[str],
    tolerances: Tolerances,
    planned: Collection[str] | None = None,
) -> tuple[BaselineChange, ...]:
    """What moved. `tried` are the labels of all jobs that were run to an end: only they count.
    `planned` are those of all the tier's jobs; None where the plan is a selection."""
    ran, dropped = set(tried), _dropped(before, planned)
    moves = [
        *(BaselineChange(ChangeKind.GONE, label, "pass", None, None) for label in dropped),
        *_passes(before, now, ran),
        *_bits(before, now),
        *_compared(before, now, tolerances.compared_percent),
        *_ops(before, now, tolerances),
        *_figures(before, now, ran | dropped, tolerances.coverage_percent),
    ]
    return tuple(sorted(moves, key=lambda move: (not move.kind.red, move.what, move.measure)))


def _dropped(before: TierBaseline, planned: Collection[str] | None) -> set[str]:
    """Recorded jobs that are no longer planned."""
    return set() if planned is None else set(before.passing).difference(planned)


def _passes(before: TierBaseline, now: TierBaseline, tried: set[str]) -> Iterator[BaselineChange]:
    for label in sorted((set(before.passing) & tried) - set(now.passing)):
        yield BaselineChange(ChangeKind.LOST, label, "pass", None, None)
    for label in sorted(set(now.passing) - set(before.passing)):
        yield BaselineChange(ChangeKind.GAINED, label, "pass", None, None)


def _bits(before: TierBaseline, now: TierBaseline) -> Iterator[BaselineChange]:
    for label in sorted(before.jobs.keys() & now.jobs.keys()):
        old, new = before.jobs[label], now.jobs[label]
        if old.inputs == new.inputs and old.digest != new.digest:
            yield BaselineChange(ChangeKind.BITS, label, "digest", None, None)


def _compared(before: TierBaseline, now: TierBaseline, percent: float) -> Iterator[BaselineChange]:
    """A pass that compares less than it did is worth less, also when its ops are others."""
    for label in sorted(before.jobs.keys() & now.jobs.keys()):
        old, new = before.jobs[label], now.jobs[label]
        if old.compared is not None and new.compared is not None:
            moves = _judged(label, "compared", (old.compared, new.compared), percent, 1)
            yield from (move for move in moves if move.kind.red or old.inputs == new.inputs)
        if old.rows is not None and new.rows is not None and new.rows < old.rows:
            yield BaselineChange(ChangeKind.WORSE, label, "rows", old.rows, new.rows)


def _ops(
    before: TierBaseline, now: TierBaseline, tolerances: Tolerances
) -> Iterator[BaselineChange]:
    recorded = set(before.passing)
    former, present = _by_kind(before.ops), _by_kind(now.ops)
    for key, (name, cost) in present.items():
        _, old = former.get(key, ("", None))
        if old is not None:
            costs = (old.cycles, cost.cycles)
            yield from _judged(name, "cycles", costs, tolerances.cycles_percent, -1)
            if old.utilisation is not None and cost.utilisation is not None:
                pair = (old.utilisation, cost.utilisation)
                yield from _judged(name, "utilisation", pair, tolerances.utilisation_percent, 1)
        elif name.partition(" | ")[0] in recorded:
            yield BaselineChange(ChangeKind.GAINED, name, "cycles", None, float(cost.cycles))
    passing = recorded.intersection(now.passing)
    for key in former.keys() - present.keys():
        if key[0] in passing:
            yield BaselineChange(ChangeKind.GONE, former[key][0], "cycles", None, None)


def _by_kind(
    ops: Mapping[str, OpBaseline],
) -> dict[tuple[str, str, int], tuple[str, OpBaseline]]:
    """(label, op with types and shapes, which of several) → (name, cost). Not by its index: an op
    that is new among them moves all that follow."""
    seen: Counter[tuple[str, str]] = Counter()
    found = {}
    for name in sorted(ops, key=_place):
        label, _, rest = name.partition(" | ")
        kind = rest.partition(" ")[2]
        found[label, kind, seen[label, kind]] = name, ops[name]
        seen[label, kind] += 1
    return found


def _place(name: str) -> tuple[str, int]:
    """Label and index of an op's name, to order by."""
    label, _, rest = name.partition(" | ")
    return label, int(rest.partition(" ")[0])


def _figures(
    before: TierBaseline, now: TierBaseline, tried: set[str], percent: float
) -> Iterator[BaselineChange]:
    found = _whole_figures(before, now, tried)
    for name in sorted(before.figures.keys() & found.keys()):
        yield from _judged(name, "figure", (before.figures[name], found[name]), percent, 1)


def _whole_figures(before: TierBaseline, now: TierBaseline, tried: set[str]) -> dict[str, float]:
    """Of the whole night; none where a recorded job was not run: that covers less."""
    return now.figures if tried.issuperset(before.passing) else {}


def _judged(
    what: str, measure: str, pair: tuple[float, float], percent: float, good: int
) -> Iterator[BaselineChange]:
    """A move when the number left the tolerance; `good` is the sign of a change for the better."""
    old, new = pair
    if abs(new - old) <= percent / 100 * abs(old) * (1 + _ROUNDING):
        return
    yield BaselineChange(
        ChangeKind.BETTER if (new - old) * good > 0 else ChangeKind.WORSE, what, measure, old, new
    )


def record(
    now: TierBaseline,
    tried: Iterable[str],
    folder: Path = FOLDER,
    planned: Collection[str] | None = None,
) -> Path:
    """Write the numbers of a tier. Jobs that were not tried or did not pass keep what was recorded
    of them, and the figures of the whole night stay unless all its jobs passed. Jobs that are no
    longer among all the `planned` ones are dropped; None: the plan is a selection.

    InputError when nothing passed."""
    if not now.passing:
        raise InputError(path_of(now.tier, folder), "passing", "nothing", "a night with a pass")
    old = load(now.tier, folder)
    passed = set(tried).intersection(now.passing)
    merged = now if old is None else _merged(old, now, {*passed, *_dropped(old, planned)})
    path = path_of(now.tier, folder)
    write_text(path, to_text(merged))
    return path


def _merged(old: TierBaseline, now: TierBaseline, tried: set[str]) -> TierBaseline:
    kept = {k: v for k, v in old.ops.items() if k.partition(" | ")[0] not in tried}
    jobs = {k: v for k, v in old.jobs.items() if k not in tried}
    passing = {*now.passing, *(label for label in old.passing if label not in tried)}
    return TierBaseline(
        tier=now.tier,
        passing=tuple(sorted(passing)),
        jobs=jobs | now.jobs,
        ops=kept | now.ops,
        figures={**old.figures, **_whole_figures(old, now, tried)},
    )


def to_text(baseline: TierBaseline) -> str:
    """JSON with one job or op per line, sorted."""
    fields = baseline.model_dump(mode="json")

    def lines(entries: Iterable[str]) -> str:
        return ",\n".join(f"    {entry}" for entry in entries)

    def table(name: str) -> str:
        entries = fields[name]
        return lines(f"{_json(key)}: {_json(entries[key])}" for key in sorted(entries))

    body = [
        f'  "schema_version": {fields["schema_version"]}',
        f'  "tier": {_json(fields["tier"])}',
        f'  "figures": {_json(fields["figures"])}',
        f'  "passing": [\n{lines(map(_json, sorted(fields["passing"])))}\n  ]',
        f'  "jobs": {{\n{table("jobs")}\n  }}',
        f'  "ops": {{\n{table("ops")}\n  }}',
    ]
    return "{\n" + ",\n".join(body) + "\n}\n"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
