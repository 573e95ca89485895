# SPDX-License-Identifier: Apache-2.0
"""What an op costs, from its packets and completion records, and the least that it moves."""

from __future__ import annotations

from pathlib import Path

import pytest

from driver.config import load_config
from driver.isa import CompletionRecord, DType, ErrorCode, Opcode, Packet
from driver.runtime import Buffer, TensorView, dense
from tb.ops.cost import compulsory_bytes, cost_of

CONFIG = load_config(Path(__file__).parents[1] / "sim_config.yaml", "small")  # 8×8, 16 bytes a beat
PRODUCT = Packet(Opcode.MATMUL, params=(8, 16, 4, 2))
PASS = Packet(Opcode.VECTOR, params=(3, 100))


def record(
    opcode: Opcode, cycles: int, active: int, stall: int, beats: int, *, start: int = 1000
) -> CompletionRecord:
    return CompletionRecord(
        0, ErrorCode.NONE, start, start + cycles, active, stall, 0, beats, 1, opcode
    )


def test_macs_are_the_products_and_utilisation_is_theirs_alone() -> None:
    overlapping = record(Opcode.VECTOR, 80, 60, 0, 9, start=1020)
    records = [record(Opcode.MATMUL, 32, 20, 4, 9), overlapping]
    cost = cost_of([PRODUCT, PASS], records, CONFIG)
    assert (cost.packets, cost.macs, cost.cycles) == (2, 8 * 16 * 4 * 2, 100)
    assert cost.utilisation == 1024 / (32 * 64)
    assert cost.dram_bytes == (9 + 1 + 9 + 1) * 16
    assert cost.bound_by == "compute"


@pytest.mark.parametrize(
    ("active", "stall", "bound"), [(50, 10, "compute"), (10, 60, "memory"), (10, 10, "overhead")]
)
def test_an_op_is_bound_by_what_takes_most_of_its_cycles(
    active: int, stall: int, bound: str
) -> None:
    assert cost_of([PASS], [record(Opcode.VECTOR, 100, active, stall, 1)], CONFIG).bound_by == bound


def test_without_records_only_what_the_packets_say_is_known() -> None:
    cost = cost_of([PRODUCT], None, CONFIG)
    assert (cost.macs, cost.cycles, cost.dram_bytes, cost.bound_by) == (1024, None, None, None)
    assert cost_of([PASS], None, CONFIG).macs is None


def test_every_element_counts_once() -> None:
    x = dense(Buffer(80), DType.FP32, (4, 5))
    row = TensorView(Buffer(10), 0, DType.BF16, (4, 5), (0, 1))
    result = dense(Buffer(40), DType.FP16, (4, 5))
    assert compulsory_bytes("aten.add.Tensor", (x, row), {}, (result,)) == 80 + 10 + 40
    assert compulsory_bytes("aten.mul.Tensor", (x, x), {}, (result,)) == 80 + 40
    assert compulsory_bytes("aten.cat.default", ((x, row), 0), {}, (result,)) == 80 + 10 + 40
    assert compulsory_bytes("aten.add.Tensor", (x, 2.0), {}, (x,)) == 160
    assert compulsory_bytes("aten.f.default", (), {"mask": row}, (None,)) == 10


def test_of_a_table_only_what_is_looked_up_has_to_be_read() -> None:
    table = dense(Buffer(1 << 28), DType.BF16, (151936, 896))
    index = dense(Buffer(128), DType.INT64, (16,))
    found = dense(Buffer(1 << 15), DType.BF16, (16, 896))
    moved = compulsory_bytes("aten.embedding.default", (table, index), {}, (found,))
    assert moved == 2 * 16 * 896 * 2 + 16 * 8
