# SPDX-License-Identifier: Apache-2.0
"""The vector engine under random programs, views, types, errors and other traffic; its rates."""

from __future__ import annotations

import pytest
from unit_host import ten_rounds

from driver.errors import InputError
from tb.unit.block import run_block


def test_no_byte_differs_and_errors_are_reported() -> None:
    result = ten_rounds("vector")
    assert result.failure == "", result.report
    assert result.compared > 500_000_000


def test_short_programs_run_at_the_rate_of_the_bus() -> None:
    """Cycles per vector of 16 elements; a beat of 256 bits is 8 fp32 or 16 bf16 elements."""
    figures = ten_rounds("vector").figures
    bound = {
        "move fp32": 2.0,
        "move bf16": 1.0,
        "move bf16, unaligned": 1.0,
        "add fp32": 4.0,
        "add bf16": 2.0,
        "mul_add bf16": 3.0,
        "clamp bf16": 2.0,  # two instructions
        "div fp32": 4.0,
        "sum fp32, one row": 4.0,  # the latency of the accumulator
        "sum fp32, rows of 32": 4.0,
    }
    assert bound.keys() <= figures.keys()
    assert {name: figures[name] for name in bound if figures[name] > 1.03 * bound[name]} == {}


@pytest.mark.parametrize(("bus_bits", "seed", "field"), [(64, 1, "bus"), (256, 0, "seed")])
def test_what_cannot_be_run_is_bad_input(bus_bits: int, seed: int, field: str) -> None:
    with pytest.raises(InputError) as caught:
        run_block("vector", bus_bits, seed)
    assert caught.value.field == field
