# SPDX-License-Identifier: Apache-2.0
"""The command processor against docs/isa.md: registers, queues, recovery, random sound and broken
packets of every opcode; and that its bench sees a wrong line, wherever it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tb.unit.ctrl.run import run_ctrl

RTL = Path(__file__).parents[1] / "rtl" / "ctrl"


@pytest.mark.parametrize("bus_bits", [128, 256, 512])
def test_every_packet_ends_as_the_contract_says(bus_bits: int) -> None:
    result = run_ctrl(bus_bits, seed=1, rounds=30)
    assert result.failure == "", result.report
    assert result.compared > 5_000


@pytest.mark.parametrize(
    ("file", "right", "wrong", "seen"),
    [
        ("npu_cmd_decode.sv", " || prog.reduce != REDUCE_NONE", "", "error code"),
        ("npu_cmd_decode.sv", "!present[2] &&", "1'b0 &&", "error code"),
        ("npu_desc_check.sv", "dim_i >= rank_o", "dim_i > rank_o", "error code"),
        (
            "npu_operand_select.sv",
            "? OPERAND_SRC2 : OPERAND_DST",
            "? OPERAND_DST : OPERAND_SRC2",
            "",
        ),
        ("npu_operand_select.sv", "operand_o.shape[MAX_RANK-1] = One;", "", "error code"),
        (
            "npu_range_check.sv",
            "tensor_q.base[2:0] & byte_mask",
            "2'(tensor_q.base[1:0] & byte_mask[1:0])",
            "error code",
        ),
        ("npu_operand_resolve.sv", "tensor_dim(operand.dim, ref_rank_q)", "operand.dim", "dim"),
    ],
)
def test_a_wrong_line_is_caught(
    tmp_path: Path, file: str, right: str, wrong: str, seen: str
) -> None:
    text = (RTL / file).read_text()
    assert text.count(right) == 1, f"the mutation of {right!r} must name one place"
    mutant = tmp_path / file
    mutant.write_text(text.replace(right, wrong))
    result = run_ctrl(256, seed=1, rounds=30, instead={mutant.name: mutant})
    assert result.failure != ""
    assert seen in result.failure
