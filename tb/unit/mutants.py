# SPDX-License-Identifier: Apache-2.0
"""Wrong lines of RTL in the programs of the benches: those of tb.unit.mutant_table, by number, and
those of the whole NPU, by the name that MUTANT= takes.

One build serves every mutant of a table or set that is in the bench's RTL, and the sound RTL beside
them (tb.mutants.expression). Running and judging are the bench's.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from driver.errors import InputError
from tb.mutants.activation import activation, mutant_set, selectable, site_of
from tb.mutants.expression import sites_of, write_sources
from tb.unit.model import BUILD_ROOT
from tb.unit.mutant_table import MUTANTS

SOUND = 0
"""The mutant number that changes nothing."""
_FOLDER = BUILD_ROOT / "mutants"


def mutant_arguments(bench: str, mutant: int | str | None) -> list[str]:
    """Arguments of the bench's program. InputError: no such mutant."""
    if isinstance(mutant, str):
        return list(activation(mutant))
    count = len(MUTANTS.get(bench, ()))
    if mutant is None or mutant == SOUND:
        return []
    if not 0 < mutant <= count:
        raise InputError("command line", "mutant", mutant, f"0 (none) to {count}")
    return [f"+{_name(mutant)}"]


def mutant_sources(
    bench: str, mutant: int | str | None, files: frozenset[str]
) -> Mapping[str, Path]:
    """By file name, the RTL of the bench with every mutant selectable; empty without a mutant.

    `files` names the RTL of the bench. InputError: there is no such mutant, or not in them.
    """
    if mutant is None:
        return {}
    if isinstance(mutant, str):
        if not has_mutant(mutant, files):
            raise InputError("command line", "mutant", mutant, f"one in the RTL of bench {bench}")
        return _write_set(bench, mutant_set(mutant), files)
    return _write_table(bench)


def has_mutant(name: str, files: frozenset[str]) -> bool:
    """Whether a mutant of the whole NPU is in one of these files. InputError: no such mutant."""
    return site_of(name).file.name in files


def _name(number: int) -> str:
    return f"mutant{number:02}"  # equally long: $test$plusargs matches what an argument begins with


@cache
def _write_table(bench: str) -> Mapping[str, Path]:
    numbered = {_name(number): one for number, one in enumerate(MUTANTS[bench], start=1)}
    return write_sources(sites_of(numbered), _FOLDER / bench)


@cache
def _write_set(bench: str, set_name: str, files: frozenset[str]) -> Mapping[str, Path]:
    sites = selectable(set_name).items()
    there = {argument: site for argument, site in sites if site.file.name in files}
    return write_sources(there, _FOLDER / f"{bench}-{set_name}")
