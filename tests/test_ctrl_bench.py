# SPDX-License-Identifier: Apache-2.0
"""The command processor against docs/isa.md: registers, queues, recovery, random sound and broken
packets of every opcode; and that its bench sees a wrong line, wherever it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tb.unit.ctrl.run import run_ctrl

RTL = Path(__file__).parents[1] / "rtl" / "ctrl"


@pytest.mark.parametrize(("bus_bits", "rounds"), [(128, 5), (256, 20), (512, 5)])
def test_every_packet_ends_as_the_contract_says(bus_bits: int, rounds: int) -> None:
    result = run_ctrl(bus_bits, seed=1, rounds=rounds)
    assert result.failure == "", result.report
    assert result.compared > 200 * rounds


@pytest.mark.parametrize(
    ("file", "right", "wrong", "seen"),
    [
        ("npu_cmd_decode.sv", " || prog.reduce != REDUCE_NONE", "", "error code"),
        ("npu_desc_check.sv", "dim_i >= rank_o", "dim_i > rank_o", "error code"),
        ("npu_operand_select.sv", "operand_o.shape[MAX_RANK-1] = One;", "", "error code"),
        ("npu_operand_resolve.sv", "tensor_dim(operand.dim, ref_rank_q)", "operand.dim", "dim"),
        ("npu_operand_resolve.sv", "awaited_q == '0) state_d", "1'b1) state_d", ""),
    ],
)
def test_a_wrong_line_is_caught(
    tmp_path: Path, file: str, right: str, wrong: str, seen: str
) -> None:
    text = (RTL / file).read_text()
    assert text.count(right) == 1, f"the mutation of {right!r} must name one place"
    mutant = tmp_path / file
    mutant.write_text(text.replace(right, wrong))
    result = run_ctrl(256, seed=1, rounds=20, instead={mutant.name: mutant})
    assert result.failure != ""
    assert seen in result.failure
