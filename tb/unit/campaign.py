# SPDX-License-Identifier: Apache-2.0
"""Every mutant of tb.unit.mutant_table on the bench that must catch it, as one table.

A mutant that no bench catches survives: a gap of the bench, or an expression that does not matter.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass

from tb.unit.arithmetic import run_arithmetic
from tb.unit.benches import BLOCKS
from tb.unit.block import run_block
from tb.unit.mutant_table import MUTANTS
from tb.unit.mutants import SOUND

_VECTORS = 60_000
_SEEDS = 3
"""So many a mutant has to survive."""
_BRIEF = 10
"""The first runs have this part of a block's rounds: what only another start shows, as a register
that is not reset, takes another seed and not a longer run."""
_RED, _PLAIN = ("\033[31m", "\033[0m") if sys.stdout.isatty() else ("", "")


@dataclass(frozen=True)
class MutantRun:
    """What a bench said of one mutant; number SOUND is the RTL with none active."""

    bench: str
    number: int
    compared: int
    failure: str
    """The first difference or broken rule; empty when there is none."""

    @property
    def right(self) -> bool:
        """Whether the mutant was caught by its failure, or the sound RTL was compared and has
        none."""
        if self.number == SOUND:
            return not self.failure and self.compared > 0
        return bool(self.failure) and MUTANTS[self.bench][self.number - 1].seen in self.failure

    def line(self) -> str:
        """Its row of the table."""
        if self.number == SOUND:
            file, change = "", "no mutant"
        else:
            mutant = MUTANTS[self.bench][self.number - 1]
            file, change = mutant.file, f"{mutant.right} -> {mutant.wrong}"
        said = self.failure or ("sound" if self.right else "SURVIVED")
        text = (
            f"{self.bench:8} {self.number:2} {file:22} {' '.join(change.split()):.60}  {said:.90}"
        )
        return text if self.right else f"{_RED}{text}{_PLAIN}"


def run_mutant(bench: str, number: int, seed: int = 1) -> MutantRun:
    """Run one mutant with one seed, or with the next ones while it survives, first briefly.

    Streams are random: a line that only rare ones reach survives some. InfrastructureError: no
    tools, a bench that dies.
    """
    if number == SOUND:
        return _run_seed(bench, number, seed)
    for part in (_BRIEF, 1) if bench in BLOCKS else (1,):
        for one in range(seed, seed + _SEEDS):
            run = _run_seed(bench, number, one, part)
            if run.right:
                return run
    return run


def _run_seed(bench: str, number: int, seed: int, part: int = 1) -> MutantRun:
    if bench in BLOCKS:
        row = BLOCKS[bench]
        rounds = -(-row.mutant_rounds // part)
        found = run_block(bench, row.mutant_bus, seed, rounds, number)
        return MutantRun(bench, number, found.compared, found.failure)
    result = run_arithmetic(bench, None, seed, count=_VECTORS, mutant=number)
    return MutantRun(bench, number, result.compared, (*result.differences, "")[0])


def run_campaign(seed: int) -> Iterator[MutantRun]:
    """Every bench on the sound RTL, then on each of its mutants."""
    for bench, mutants in MUTANTS.items():
        for number in range(SOUND, len(mutants) + 1):
            yield run_mutant(bench, number, seed)


def print_campaign(seed: int) -> bool:
    """Print the table as it grows, and a summary. Whether nothing survived."""
    runs = []
    for run in run_campaign(seed):
        sys.stdout.write(f"{run.line()}\n")
        sys.stdout.flush()
        runs.append(run)
    mutants = [run for run in runs if run.number != SOUND]
    caught = sum(run.right for run in mutants)
    sys.stdout.write(f"{caught} of {len(mutants)} mutants caught, seed {seed}\n")
    return all(run.right for run in runs)
