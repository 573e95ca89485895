# SPDX-License-Identifier: Apache-2.0
"""The memory controller and the COPY/FILL engine under random traffic."""

from __future__ import annotations

from pathlib import Path

import pytest
from unit_host import ten_rounds

from driver.errors import InputError
from tb.unit.benches import arithmetic_program
from tb.unit.block import run_block


def test_no_byte_differs_and_no_rule_is_broken() -> None:
    result = ten_rounds("mem")
    assert result.failure == "", result.report
    assert result.compared > 100_000_000


def test_copies_and_short_reads_use_every_cycle_of_the_bus() -> None:
    figures = ten_rounds("mem").figures
    names = {"COPY 64 KiB", "COPY 64 KiB, offsets 3 and 8", "FILL 64 KiB", "2-beat reads"}
    assert names < set(figures)
    assert {name: rate for name, rate in figures.items() if rate < 0.99} == {}


@pytest.mark.parametrize(("bus_bits", "seed", "field"), [(64, 1, "bus"), (256, 0, "seed")])
def test_what_cannot_be_run_is_bad_input(bus_bits: int, seed: int, field: str) -> None:
    with pytest.raises(InputError) as caught:
        run_block("mem", bus_bits, seed)
    assert caught.value.field == field


def test_a_file_that_is_not_part_of_the_bench_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="npu_nothing"):
        arithmetic_program("fp_fma", {"npu_nothing.sv": tmp_path})
