# SPDX-License-Identifier: Apache-2.0
"""What bus and array allow, by which measured cycles of a model's ops are judged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from driver.errors import VerdictError
from driver.isa import CompletionRecord, ErrorCode, Opcode, Packet
from tb.bench._model import OpCost, array_cycles, queue_cost
from tb.ops.pair import DeviceResult, PairResult


def product(m: int, k: int, n: int, batch: int) -> Packet:
    return Packet(Opcode.MATMUL, params=(m, k, n, batch))


def test_the_array_takes_a_row_of_so_many_elements_for_so_many_columns_at_once() -> None:
    assert array_cycles([product(16, 16, 16, 1)], 16) == 16
    assert array_cycles([product(6, 25, 64 * 784, 1)], 16) == 6 * 2 * 3136
    assert array_cycles([product(1, 17, 33, 2), Packet(Opcode.COPY)], 16) == 2 * 2 * 3


def test_the_bound_is_the_array_or_the_bus() -> None:
    cost = OpCost("conv", 100, 60, 6400, 3201, 640, 64)
    assert cost.bound == 60
    assert OpCost("conv", 100, 10, 6400, 3201, 640, 64).bound == 51
    assert OpCost("copy", 100, 10, 6400, 3200, 3201, 64).bound == 51
    assert "traffic 1.67 × least" in str(cost)
    assert "bound 60 (array 60)" in str(cost)


def record(seq: int, start: int, end: int) -> CompletionRecord:
    return CompletionRecord(seq, ErrorCode.NONE, start, end, 0, 0, 0, 0, 0, Opcode.NOP)


def queue_result(*, wrong: bool = False, count: int = 3) -> PairResult:
    records = [record(0, 100, 200), record(1, 150, 260), record(2, 250, 300)]
    cmodel, rtl = (np.arange(count, dtype=np.uint32) for _ in range(2))
    if wrong:
        rtl[1] ^= 1
    return PairResult(
        cmodel=DeviceResult((cmodel, None), [], None),
        rtl=DeviceResult((rtl, None), records, None),
        results=(None, None),
        packets=(product(16, 16, 16, 1),),
        bytes_compared=4096,
        stray=(),
    )


def test_a_queue_takes_from_its_first_start_to_its_last_end() -> None:
    cost = queue_cost(queue_result(), 16)
    assert (cost.commands, cost.cycles, cost.busy, cost.array_cycles) == (3, 200, 260, 16)


@pytest.mark.parametrize(
    "result",
    [
        queue_result(wrong=True),
        queue_result(count=0),
        replace(queue_result(), stray=(64,)),
        replace(queue_result(), bytes_compared=0),
    ],
    ids=["a wrong bit", "no element", "a stray byte", "no page"],
)
def test_a_queue_that_is_not_right_has_no_cost(result: PairResult) -> None:
    with pytest.raises(VerdictError, match="the queue"):
        queue_cost(result, 16)
