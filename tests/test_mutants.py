# SPDX-License-Identifier: Apache-2.0
"""Wrong lines of RTL: each is caught by its bench; with none of them active the RTL is sound."""

from __future__ import annotations

import pytest

from tb.unit import campaign
from tb.unit.benches import ARITHMETIC, BLOCKS
from tb.unit.campaign import MutantRun, run_mutant
from tb.unit.mutant_table import MUTANTS
from tb.unit.mutants import SOUND


def test_every_bench_has_mutants() -> None:
    assert set(MUTANTS) == {*ARITHMETIC, *BLOCKS}


@pytest.mark.parametrize(
    ("bench", "number"),
    [(bench, number) for bench in MUTANTS for number in range(1, len(MUTANTS[bench]) + 1)],
)
def test_a_wrong_line_is_caught(bench: str, number: int) -> None:
    run = run_mutant(bench, number)
    assert run.right, run.line()
    assert bench in BLOCKS or "expected 0x" in run.failure


@pytest.mark.parametrize("bench", MUTANTS)
def test_the_rtl_with_no_mutant_active_is_sound(bench: str) -> None:
    run = run_mutant(bench, SOUND)
    assert run.right, run.line()
    assert run.compared >= (200 * BLOCKS[bench].mutant_rounds if bench in BLOCKS else 60_000)


def test_a_survivor_makes_the_campaign_fail(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def survive(bench: str, number: int, seed: int) -> MutantRun:
        return MutantRun(bench, number, 1, "" if number in (SOUND, 2) else "expected 0x0")

    monkeypatch.setattr(campaign, "MUTANTS", {"fp_cast": MUTANTS["fp_cast"]})
    monkeypatch.setattr(campaign, "run_mutant", survive)
    assert not campaign.print_campaign(1)
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if "SURVIVED" in line] == [lines[2]]
    assert lines[-1] == "2 of 3 mutants caught, seed 1"
