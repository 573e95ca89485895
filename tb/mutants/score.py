# SPDX-License-Identifier: Apache-2.0
"""The mutation score: how many of a random sample of mutants the tests catch.

Each mutant goes through the runs of `LADDER` until one fails. One that survives all of them is a
hole of the tests, or changes nothing that anybody could see: a person decides which.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from driver.config import CONFIG_FILE, load_config
from driver.results import RunResult
from tb.mutants.activation import site_of, with_mutant
from tb.mutants.campaign import (
    CONFIG,
    NoVerdict,
    first_failed,
    require_sound,
    require_sound_now,
    run_with,
)
from tb.mutants.expression import Site
from tb.mutants.runs import COUNTED, LADDER, UNITS
from tb.mutants.sampled import line_of
from tb.sim.build import build
from tb.sim.spec import REPOSITORY, spec_for
from tb.unit.suite import checks_with

_SHOWN = 48
_BUILDS = ("check", "cocotb")
_DEVIATION = 1.96
"""Of a normal distribution: 95 % are within."""


class Fate(StrEnum):
    """What became of a mutant."""

    CAUGHT = "caught"
    """A run failed and blamed the RTL."""
    MISBLAMED = "misblamed"
    """A run failed and blamed something else."""
    STOPPED = "stopped"
    """A run ended without a verdict: the device did nothing any more."""
    CYCLES = "cycles"
    """All results are right, in other numbers of cycles: the baselines of a tier see it."""
    SURVIVED = "survived"


@dataclass(frozen=True)
class SampledResult:
    """What became of a mutant, and in which run."""

    name: str
    site: Site
    fate: Fate
    run: tuple[str, ...] = ()
    said: str = ""

    def line(self) -> str:
        """Its row of the table."""
        place = f"{self.site.file.relative_to(REPOSITORY)}:{line_of(self.site)}"
        change = f"{_short(self.site.right)} → {_short(self.site.wrong)}"
        seen = f"{' '.join(self.run)}: {self.said:.80}" if self.run else ""
        return f"{self.name:14} {self.fate.value:9} {place}  {change}  {seen}".rstrip()


def _short(text: str) -> str:
    """In one line and not too long."""
    joined = " ".join(text.split())
    return joined if len(joined) <= _SHOWN else f"{joined[:_SHOWN]}…"


def build_all(names: Iterable[str]) -> None:
    """The builds that the mutants are in. InputError: no such mutant. InfrastructureError: none."""
    config = load_config(CONFIG_FILE, CONFIG)
    for variant in sorted({with_mutant(kind, name) for name in names for kind in _BUILDS}):
        build(spec_for(config, variant))


def judge(name: str, folder: Path) -> SampledResult:
    """Run the ladder until a run fails or ends without a verdict; results below `folder`.

    A run without a verdict is repeated: a machine that is short of something seldom stops the same
    run twice. InfrastructureError when the sound RTL does not pass a run that counts.
    """
    site = site_of(name)
    cycles: dict[tuple[str, ...], list[int | None]] = {}
    for step, arguments in enumerate(LADDER):
        if arguments == UNITS and not checks_with(name):
            continue
        result = _run_twice(name, arguments, folder / str(step))
        if isinstance(result, NoVerdict):
            require_sound_now(name, arguments)
            said = str(result).rpartition(", ")[2]
            return SampledResult(name, site, Fate.STOPPED, arguments, said)
        if result.status == "fail":
            require_sound(name, arguments)
            blame, said = _failure(result)
            fate = Fate.CAUGHT if blame == "rtl" else Fate.MISBLAMED
            return SampledResult(name, site, fate, arguments, said)
        cycles[arguments] = _cycles(result)
    for arguments in COUNTED:
        if cycles[arguments] != _cycles(require_sound(name, arguments)):
            return SampledResult(name, site, Fate.CYCLES, arguments)
    return SampledResult(name, site, Fate.SURVIVED)


def _run_twice(name: str, arguments: tuple[str, ...], folder: Path) -> RunResult | NoVerdict:
    """The result; where the run stops without a verdict, the result of another one."""
    for attempt in ("", "-again"):
        try:
            return run_with(name, arguments, folder.with_name(folder.name + attempt))
        except NoVerdict as error:
            found = error
    return found


def _failure(result: RunResult) -> tuple[str, str]:
    """Blame and what was said, of a run that failed."""
    row = first_failed(result)
    if row is None:  # before the first op: the message has the blame
        head, _, said = (result.message or "").partition(": ")
        return head.removeprefix("blame "), said
    return row.blame, "" if row.failure is None else row.failure.detail.partition(" (log: ")[0]


def _cycles(result: RunResult) -> list[int | None]:
    return [row.cycles for row in result.ops]


def share_between(found: int, of: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share: found of so many."""
    z2 = _DEVIATION**2
    share = found / of
    middle = (share + z2 / (2 * of)) / (1 + z2 / of)
    half = _DEVIATION * math.sqrt(share * (1 - share) / of + z2 / (4 * of * of)) / (1 + z2 / of)
    return max(0.0, middle - half), min(1.0, middle + half)


def summary(results: Sequence[SampledResult]) -> str:
    """The line below the table. A run without a verdict counts as detected: it is no pass."""
    fates = Counter(result.fate for result in results)
    found = len(results) - fates[Fate.SURVIVED]
    low, high = share_between(found, len(results))
    counts = ", ".join(f"{fates[fate]} {fate.value}" for fate in Fate)
    return (
        f"{counts}: {found} of {len(results)} detected, "
        f"{low:.0%} to {high:.0%} of all sites with 95 % confidence"
    )
