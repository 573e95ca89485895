# SPDX-License-Identifier: Apache-2.0
"""Turns a tier of sim_config.yaml into items: tests × configurations × backends × seeds × shards.

Every name is checked before anything runs. Knows no store and starts nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from driver.errors import InputError
from driver.results import MAX_SEED, Shard
from driver.test_info import TestInfo
from regress.nightly.settings import SECTION, JobLimits, NightlyConfig, TestEntry, TierEntry
from regress.paths import ROOT
from regress.results.model import PlannedJob
from regress.run import runs_in

REPLAY = "replay"
_COMMAND_LINE = "command line"


@dataclass(frozen=True)
class AvailableNames:
    """The names that a plan may use."""

    file: Path
    configs: Collection[str]
    tests: Mapping[str, TestInfo]
    workloads: Collection[str]


def tier_items(
    settings: NightlyConfig, tier: str, known: AvailableNames, first_seed: int | None = None
) -> tuple[PlannedJob, ...]:
    """The items of a tier in the order of the file. InputError for a name that there is not, or
    for two items that are the same work."""
    if tier not in settings.tiers:
        expected = f"one of {', '.join(settings.tiers)}"
        raise InputError(_COMMAND_LINE, "tier", tier or "nothing", expected)
    seed = settings.seed if first_seed is None else first_seed
    items: list[PlannedJob] = []
    for name, use in settings.tiers[tier].items():
        row = settings.tests[name]
        if seed + use.seeds - 1 > MAX_SEED:
            raise InputError(
                known.file, f"first seed of {name}", seed, f"{use.seeds} seeds up to {MAX_SEED}"
            )
        _check(known, f"{SECTION}.tiers.{tier}.{name}", f"{SECTION}.tests.{name}", row, use)
        items += row_items(row, use, seed, row.limits or settings.limits)
    return numbered(items, known.file)


def numbered(items: Iterable[PlannedJob], file: Path) -> tuple[PlannedJob, ...]:
    """With their positions. InputError when two are the same work: they have one label then, by
    which what is recorded of a job is found."""
    seen: dict[str, PlannedJob] = {}
    for ordinal, item in enumerate(items):
        if item.label in seen:
            raise InputError(file, SECTION, f"{item.label} twice", "every job once")
        seen[item.label] = replace(item, ordinal=ordinal)
    return tuple(seen.values())


def row_items(
    row: TestEntry, use: TierEntry, first_seed: int, limits: JobLimits
) -> Iterator[PlannedJob]:
    """The items of one test in one tier; not numbered, and no name checked."""
    for config in use.configs:
        for backend in use.backends:
            for seed in range(first_seed, first_seed + use.seeds):
                for index in range(row.shards):
                    yield PlannedJob(
                        test=row.test,
                        config=config,
                        seed=seed,
                        backend=backend,
                        workload=row.workload,
                        mode=row.mode,
                        array=row.array,
                        allow_cpu=row.allow_cpu,
                        shard=Shard(index=index, count=row.shards) if row.shards > 1 else None,
                        wall_s=limits.wall_s,
                        max_cycles=limits.cycles,
                        skip=use.skip,
                        areas=row.areas,
                    )


def _check(
    known: AvailableNames, use_field: str, row_field: str, row: TestEntry, use: TierEntry
) -> None:
    """InputError for the first name that there is not."""

    def one_of(field: str, value: str, names: Collection[str]) -> None:
        if value not in names:
            raise InputError(known.file, field, value, f"one of {', '.join(names)}")

    one_of(f"{row_field}.test", row.test, known.tests)
    if row.workload is not None:
        one_of(f"{row_field}.workload", row.workload, known.workloads)
    info = known.tests[row.test]
    if row.mode is not None and not runs_in(info, row.mode):
        expected = f"{', '.join(info.modes)}, as {row.test} runs"
        raise InputError(known.file, f"{row_field}.mode", row.mode, expected)
    if row.shards > 1 and "chained" in ((row.mode,) if row.mode else info.modes):
        raise InputError(known.file, f"{row_field}.shards", row.shards, "1: a chain is one job")
    for number, area in enumerate(row.areas):
        if not (ROOT / area).exists():
            field = f"{row_field}.areas[{number}]"
            raise InputError(known.file, field, area, "a path of the project")
    for config in use.configs:
        one_of(f"{use_field}.configs", config, known.configs)
    for backend in use.backends:
        one_of(f"{use_field}.backends", backend, info.backends)


_FIELDS = ("test", "config", "seed", "backend", "workload", "mode", "array", "shard", "id")


def selected(items: Sequence[PlannedJob], words: str) -> tuple[PlannedJob, ...]:
    """The items that every word of a filter admits: `test=mat* config=default`, or a bare pattern
    for the label. InputError for an unknown field, or when nothing is left."""
    patterns = [_parsed(word) for word in words.split()]
    if not patterns:
        raise InputError(_COMMAND_LINE, "filter", words or "nothing", "a word, as `test=mat*`")
    found = tuple(
        item
        for item in items
        if all(_fits(_text(item, field), pattern) for field, pattern in patterns)
    )
    if not found:
        labels = ", ".join(item.label for item in items[:3])
        raise InputError(_COMMAND_LINE, "filter", words or "nothing", f"some of {labels}, …")
    return found


def _parsed(word: str) -> tuple[str, str]:
    field, equals, pattern = word.partition("=")
    if not equals:
        return "label", f"*{word}*"
    if field not in _FIELDS:
        raise InputError(_COMMAND_LINE, "filter", field, f"one of {', '.join(_FIELDS)}")
    return field, pattern


def _fits(text: str, pattern: str) -> bool:
    """Labels have brackets, which a pattern takes for a set of characters."""
    return fnmatchcase(text, pattern) or fnmatchcase(text, pattern.replace("[", "[[]"))


def _text(item: PlannedJob, field: str) -> str:
    value = getattr(item, field)
    return "" if value is None else str(value)
