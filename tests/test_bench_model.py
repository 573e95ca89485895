# SPDX-License-Identifier: Apache-2.0
"""What bus and array allow, by which measured cycles of a model's ops are judged."""

from __future__ import annotations

from driver.isa import Opcode, Packet
from tb.bench._model import OpCost, array_cycles


def product(m: int, k: int, n: int, batch: int) -> Packet:
    return Packet(Opcode.MATMUL, params=(m, k, n, batch))


def test_the_array_takes_a_row_of_so_many_elements_for_so_many_columns_at_once() -> None:
    assert array_cycles([product(16, 16, 16, 1)], 16) == 16
    assert array_cycles([product(6, 25, 64 * 784, 1)], 16) == 6 * 2 * 3136
    assert array_cycles([product(1, 17, 33, 2), Packet(Opcode.COPY)], 16) == 2 * 2 * 3


def test_the_bound_is_the_array_or_the_bus() -> None:
    cost = OpCost("conv", 100, 60, 6400, 3201, 64)
    assert cost.bound == 60
    assert OpCost("conv", 100, 10, 6400, 3201, 64).bound == 51
    assert "traffic 2.00 × least" in str(cost)
    assert "bound 60 (array 60)" in str(cost)
