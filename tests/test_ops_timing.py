# SPDX-License-Identifier: Apache-2.0
"""Times that no hardware can have done are no pass."""

from __future__ import annotations

from dataclasses import replace

import pytest

from driver.config import CONFIG_FILE, load_config
from driver.isa import CompletionRecord, Opcode, Packet
from tb.ops.timing import impossible

CONFIG = load_config(CONFIG_FILE, "small")
PRODUCT = Packet(Opcode.MATMUL, 0, params=(8, 64, 8, 1))
CYCLES = 8 * 64 * 8 // CONFIG.array_size**2
"""The least of PRODUCT."""
RECORD = CompletionRecord(
    seq=0, status=0, start_cycle=100, end_cycle=100 + CYCLES, active_cycles=CYCLES - 20,
    operand_stall=10, result_stall=10, read_beats=CYCLES, write_beats=CYCLES,
    opcode=Opcode.MATMUL,
)  # fmt: skip
WRONG = {
    "ended": {"end_cycle": 99},
    "beats of a channel": {"write_beats": CYCLES + 1},
    "active or stalled": {"result_stall": 11},
    "multiply-adds": {
        "end_cycle": 99 + CYCLES,
        "read_beats": 0,
        "write_beats": 0,
        "active_cycles": 0,
    },
}


def test_the_least_that_is_possible_is_possible() -> None:
    assert impossible([PRODUCT], [RECORD], CONFIG) is None


@pytest.mark.parametrize("name", WRONG)
def test_each_impossible_record_is_named(name: str) -> None:
    record = replace(RECORD, **WRONG[name])
    text = impossible([PRODUCT, PRODUCT], [RECORD, replace(record, start_cycle=100)], CONFIG)
    assert text is not None
    assert text.startswith("record of command 2, MATMUL: ")
    assert name in text


def test_commands_start_in_order() -> None:
    early = replace(RECORD, start_cycle=99)
    assert "the one before in 100" in str(impossible([PRODUCT] * 2, [RECORD, early], CONFIG))
