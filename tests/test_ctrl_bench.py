# SPDX-License-Identifier: Apache-2.0
"""The command processor against docs/isa.md: registers, queues, recovery, random sound and broken
packets of every opcode."""

from __future__ import annotations

from tb.unit.block import run_block


def test_every_packet_ends_as_the_contract_says() -> None:
    result = run_block("ctrl", 256, seed=1, rounds=20)
    assert result.failure == "", result.report
    assert result.compared > 200 * 20
