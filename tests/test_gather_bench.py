# SPDX-License-Identifier: Apache-2.0
"""The GATHER/SCATTER engine under random commands, errors and other traffic."""

from __future__ import annotations

from typing import Any

import pytest

from tb.unit.block import run_block


def other_width(bus_bits: int) -> Any:
    """Its errors are seen by the test `units`; its rates only here."""
    return pytest.param(bus_bits, 4, marks=pytest.mark.broad)


@pytest.mark.parametrize(("bus_bits", "rounds"), [other_width(128), (256, 15), other_width(512)])
def test_no_byte_differs_and_every_error_is_the_first_one(bus_bits: int, rounds: int) -> None:
    result = run_block("gather", bus_bits, seed=1, rounds=rounds)
    assert result.failure == "", result.report
    assert result.compared > 500_000_000
    # Rows of a table move at the rate of the bus.
    per_beat = {name: cycles for name, cycles in result.figures.items() if "per beat" in name}
    assert len(per_beat) == 3
    assert {name: cycles for name, cycles in per_beat.items() if cycles > 1.02} == {}
