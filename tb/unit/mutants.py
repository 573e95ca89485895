# SPDX-License-Identifier: Apache-2.0
"""The wrong lines of tb.unit.mutant_table in the programs of their benches, all of a bench in one.

One build serves every mutant and the sound RTL beside them (tb.mutants.expression). Running and
judging are the bench's.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from driver.errors import InputError
from tb.mutants.expression import sites_of, write_sources
from tb.unit.model import BUILD_ROOT
from tb.unit.mutant_table import MUTANTS

SOUND = 0
"""The mutant number that changes nothing."""
_FOLDER = BUILD_ROOT / "mutants"


def mutant_arguments(bench: str, mutant: int | None) -> list[str]:
    """Arguments of the bench's program. InputError: a number that is not in the table."""
    count = len(MUTANTS.get(bench, ()))
    if mutant is None or mutant == SOUND:
        return []
    if not 0 < mutant <= count:
        raise InputError("command line", "mutant", mutant, f"0 (none) to {count}")
    return [f"+{_name(mutant)}"]


def mutant_sources(bench: str, mutant: int | None) -> Mapping[str, Path]:
    """By file name, the RTL with every mutant of the bench selectable; empty without a mutant."""
    return {} if mutant is None else _write(bench)


def _name(number: int) -> str:
    return f"mutant{number:02}"  # equally long: $test$plusargs matches what an argument begins with


@cache
def _write(bench: str) -> Mapping[str, Path]:
    numbered = {_name(number): one for number, one in enumerate(MUTANTS[bench], start=1)}
    return write_sources(sites_of(numbered), _FOLDER / bench)
