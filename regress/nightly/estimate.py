# SPDX-License-Identifier: Apache-2.0
"""How long a plan will take, by what its jobs took before, or jobs like them. Runs nothing."""

from __future__ import annotations

import heapq
import re
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from regress.results.model import PlannedJob
from regress.results.store import Store

_PLANS = 10
"""Stored plans, the newest ones, whose times are looked at."""
_SEED = re.compile(r" seed \d+")
_CONFIG = re.compile(r"\[[^\]]*\]")

Seconds = Callable[[PlannedJob], float | None]
"""Expected wall-clock time of a job in s; None when nothing like it has run."""


@dataclass(frozen=True)
class Estimate:
    """Expected wall-clock times in s."""

    jobs: int
    unknown: int
    """Jobs of which nothing like them has run: they count as 0 s."""
    job_seconds: float
    """One job after the other."""
    wall_seconds: float
    """On `slots` slots, in the order of the plan."""
    slots: int
    preparation_seconds: float
    """Builds and captures, as if none were there."""

    def __str__(self) -> str:
        words = [
            f"{self.jobs} jobs: about {duration_text(self.wall_seconds)}, {self.slots} at once "
            f"({duration_text(self.job_seconds)} one by one)"
        ]
        if self.preparation_seconds:
            before = duration_text(self.preparation_seconds)
            words.append(f"before them, up to {before} for missing builds and captures")
        if self.unknown:
            words.append(f"{self.unknown} jobs without a record are not in these times")
        return "; ".join(words)


def duration_text(seconds: float) -> str:
    """Seconds as `12.3 s`, `4 min 05 s` or `2 h 10 min`."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"


def stored_seconds(store: Store) -> dict[str, float]:
    """Label → wall-clock time of the last executed attempt, over the newest plans."""
    found: dict[str, float] = {}
    for plan in store.plans(limit=_PLANS):
        for result in store.item_results(plan.id):
            if result.last is not None and result.last.status.executed:
                found.setdefault(result.item.label, result.last.seconds)
    return found


def expected_seconds(recorded: Mapping[str, float]) -> Seconds:
    """By the job's own record; or the mean of its other seeds; or of other configurations too."""
    groups: defaultdict[str, list[float]] = defaultdict(list)
    for label, seconds in recorded.items():
        for key in {label, *_likenesses(label)}:
            groups[key].append(seconds)

    def expected(item: PlannedJob) -> float | None:
        keys = (item.label, *_likenesses(item.label))
        return next((statistics.fmean(groups[key]) for key in keys if key in groups), None)

    return expected


def _likenesses(label: str) -> tuple[str, str]:
    """Without the seed; without seed and configuration."""
    any_seed = _SEED.sub("", label)
    return any_seed, _CONFIG.sub("[*]", any_seed)


def estimate(
    items: Sequence[PlannedJob], expected: Seconds, slots: int, preparations: Iterable[float] = ()
) -> Estimate:
    """The times of `items` in their order; `preparations`: s of the builds and captures."""
    times = [expected(item) for item in items if not item.skip]
    known = [seconds for seconds in times if seconds is not None]
    free = [0.0] * min(slots, max(1, len(known)))
    for seconds in known:
        heapq.heapreplace(free, free[0] + seconds)
    return Estimate(
        jobs=len(items),
        unknown=len(times) - len(known),
        job_seconds=sum(known),
        wall_seconds=max(free),
        slots=slots,
        preparation_seconds=sum(preparations),
    )
