# SPDX-License-Identifier: Apache-2.0
"""The command processor against docs/isa.md: registers, queues, recovery, random sound and broken
packets of every opcode."""

from __future__ import annotations

import pytest
from unit_host import other_width

from tb.unit.block import run_block


@pytest.mark.parametrize(
    ("bus_bits", "rounds"), [other_width(128, 5), (256, 20), other_width(512, 5)]
)
def test_every_packet_ends_as_the_contract_says(bus_bits: int, rounds: int) -> None:
    result = run_block("ctrl", bus_bits, seed=1, rounds=rounds)
    assert result.failure == "", result.report
    assert result.compared > 200 * rounds
