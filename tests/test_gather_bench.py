# SPDX-License-Identifier: Apache-2.0
"""The GATHER/SCATTER engine under random commands, errors and other traffic; and that its bench
sees a wrong line, wherever it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tb.unit.gather.run import run_gather

RTL = Path(__file__).parents[1] / "rtl"


@pytest.mark.parametrize(("bus_bits", "rounds"), [(128, 4), (256, 15), (512, 4)])
def test_no_byte_differs_and_every_error_is_the_first_one(bus_bits: int, rounds: int) -> None:
    result = run_gather(bus_bits, seed=1, rounds=rounds)
    assert result.failure == "", result.report
    assert result.compared > 500_000_000
    # Rows of a table move at the rate of the bus.
    per_beat = {name: cycles for name, cycles in result.figures.items() if "per beat" in name}
    assert len(per_beat) == 3
    assert {name: cycles for name, cycles in per_beat.items() if cycles > 1.02} == {}


@pytest.mark.parametrize(
    ("file", "right", "wrong", "seen"),
    [
        ("npu_gather_hazard.sv", "clash_o = 1'b1", "clash_o = 1'b0", "expected"),
        ("npu_gather_index.sv", "value >= 64'(limit_i)", "value > 64'(limit_i)", "expected 10"),
        ("npu_gather_index.sv", "= wide ? word :", "= wide ? 64'(word[31:0]) :", "expected 10"),
        ("npu_gather_add.sv", "fp32_fma(was, One, more)", "more", "expected"),
        ("npu_gather_land.sv", "&& room_q >= req_beats_o", "", "without room"),
        ("npu_gather.sv", "(gather ? src_empty : dst_empty)", "1'b1", "error"),
        ("npu_gather.sv", "stride[i] == '0 ||", "stride[i] >= '0 ||", "expected"),
    ],
)
def test_a_wrong_line_is_caught(
    tmp_path: Path, file: str, right: str, wrong: str, seen: str
) -> None:
    text = (RTL / "gather" / file).read_text()
    assert text.count(right) == 1, f"the mutation of {right!r} must name one place"
    mutant = tmp_path / file
    mutant.write_text(text.replace(right, wrong))
    result = run_gather(256, seed=1, rounds=10, instead={mutant.name: mutant})
    assert result.failure != ""
    assert seen in result.failure
