# SPDX-License-Identifier: Apache-2.0
"""Order of rows of any length: stable, NaN last, all 64 bits; the first few of a long row."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from lower_torch import TorchBench, numbers, open_bench

from driver.lower.order import SHORT

VOCABULARY = 151_936


@pytest.fixture(scope="module")
def npu() -> Iterator[TorchBench]:
    made = open_bench()
    yield made
    made.device.close()


@pytest.mark.parametrize("length", [SHORT, SHORT + 1, 4097])
@pytest.mark.parametrize("descending", [False, True])
def test_sorts_are_stable_at_every_length(npu: TorchBench, length: int, descending: bool) -> None:
    x = numbers(2, length).round()
    x[0, 5] = x[1, length - 1] = float("nan")
    x[1, 3], x[1, 4] = float("inf"), -0.0
    answer = npu.call("sort.stable", x, stable=True, descending=descending)
    assert answer.exact() == 4 * length


def test_long_integers_are_sorted_by_all_their_bits(npu: TorchBench) -> None:
    x = torch.tensor([5, -1, 1 << 40, (1 << 40) + 1, -(1 << 63), (1 << 63) - 1, 1 << 32, 0, -1])
    assert npu.call("sort.stable", x, stable=True).exact() == 18
    assert npu.call("topk", x.unique(), 4).exact() == 8
    wide = x.repeat(80)
    assert npu.call("argsort.stable", wide, stable=True, descending=True).exact() == 720


def test_the_best_of_a_vocabulary_cost_few_packets(npu: TorchBench) -> None:
    logits = numbers(1, VOCABULARY)
    logits[0, 70_000:70_040] = 50.0  # more equal ones than are asked for, in one block
    for k, largest in ((1, True), (40, True), (50, True), (50, False)):
        answer = npu.call("topk", logits, k, -1, largest)
        (values, places), expected = answer.found, answer.expected[0]
        assert values is not None and places is not None and expected is not None
        assert torch.equal(values, expected)
        assert torch.equal(logits.gather(1, places), expected)
        assert len(places.unique()) == k
        assert len(answer.program.packets) < 50


def test_the_blocks_that_hold_the_best_may_be_the_last_elements(npu: TorchBench) -> None:
    for length in (SHORT + 1, 2999, 3000, 3001):
        rising = torch.arange(float(length))
        assert npu.call("topk", rising, 3).exact() == 6
        assert npu.call("topk", -rising, 3).exact() == 6
        assert npu.call("kthvalue", rising, length - 1).exact() == 2
