# SPDX-License-Identifier: Apache-2.0
"""The command processor against docs/isa.md: registers, queues, recovery, random sound and broken
packets of every opcode; and that its bench sees a wrong line, wherever it is."""

from __future__ import annotations

import pytest
from unit_host import other_width

from tb.unit.block import run_block
from tb.unit.mutants import MUTANTS, SOUND


@pytest.mark.parametrize(
    ("bus_bits", "rounds"), [other_width(128, 5), (256, 20), other_width(512, 5)]
)
def test_every_packet_ends_as_the_contract_says(bus_bits: int, rounds: int) -> None:
    result = run_block("ctrl", bus_bits, seed=1, rounds=rounds)
    assert result.failure == "", result.report
    assert result.compared > 200 * rounds


@pytest.mark.parametrize("mutant", range(1, len(MUTANTS["ctrl"]) + 1))
def test_a_wrong_line_is_caught(mutant: int) -> None:
    result = run_block("ctrl", 256, seed=1, rounds=20, mutant=mutant)
    assert result.failure != ""
    assert MUTANTS["ctrl"][mutant - 1].seen in result.failure


def test_the_rtl_with_no_mutant_active_is_sound() -> None:
    result = run_block("ctrl", 256, seed=1, rounds=20, mutant=SOUND)
    assert result.failure == "", result.report
