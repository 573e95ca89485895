# SPDX-License-Identifier: Apache-2.0
"""Ops that place, read and write elements: the cmodel's bits are torch's."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from lower_torch import TorchBench, layouts, numbers

from driver.isa import Opcode

TYPES = (torch.float32, torch.float16, torch.bfloat16, torch.int8, torch.int32, torch.int64)
ALL = (*TYPES, torch.uint8, torch.bool)
every_type = pytest.mark.parametrize("dtype", ALL, ids=str)
sums_type = pytest.mark.parametrize("dtype", TYPES, ids=str)
INDEX = torch.tensor([[1, 0, 3], [2, 2, 1]])


@every_type
def test_conversion_of_every_pair(npu: TorchBench, dtype: torch.dtype) -> None:
    values = numbers(3, 4, 5, dtype=torch.uint8).to(dtype)  # no negative number as an unsigned
    for x in layouts(values).values():
        for target in ALL:
            assert npu.call("_to_copy", x, dtype=target).exact() == 60


@every_type
def test_copies(npu: TorchBench, dtype: torch.dtype) -> None:
    for x in layouts(numbers(3, 4, 5, dtype=dtype)).values():
        assert npu.call("clone", x).exact() == 60
        assert npu.call("clone", x, memory_format=torch.contiguous_format).exact() == 60
        assert npu.call("cat", [x, x[:1], torch.zeros(0, dtype=dtype)], 0).exact() == 80
        assert npu.call("cat", [x, x], -1).exact() == 120
        assert npu.call("stack", [x, x], 1).exact() == 120
        assert npu.call("repeat", x, [2, 1, 2, 3]).exact() == 720
        assert npu.call("slice_scatter", x, x[:, :2], 1, 1, 4, 2).exact() == 60
        assert npu.call("select_scatter", x, x[0], 0, -1).exact() == 60
        assert npu.call("constant_pad_nd", x, [1, 2, 0, 3], 1).exact() == 3 * 7 * 8
        assert npu.call("constant_pad_nd", x, [-1, 2, 1, -1]).exact() == 3 * 4 * 6


def test_expanded_and_mixed_sources(npu: TorchBench) -> None:
    x = numbers(2, 1, 5).expand(2, 7, 5)
    answer = npu.call("clone", x, memory_format=torch.contiguous_format)
    assert answer.exact() == 70
    assert [packet.opcode for packet in answer.program.packets] == [Opcode.COPY]
    assert npu.call("copy_", torch.zeros(3, 4), numbers(4, dtype=torch.float16)).exact() == 12
    assert npu.call("cat", [numbers(2), torch.arange(3)]).exact() == 5


@every_type
def test_fills(npu: TorchBench, dtype: torch.dtype) -> None:
    x = numbers(3, 4, dtype=dtype)
    assert npu.call("fill.Scalar", x, 3).exact() == 12
    assert npu.call("fill.Tensor", x, torch.tensor(1, dtype=dtype)).exact() == 12
    assert npu.call("full", [3, 4], 1.1, dtype=dtype).exact() == 12
    assert npu.call("zeros", [7], dtype=dtype).exact() == 7
    assert npu.call("ones_like", x.t(), dtype=dtype).exact() == 12
    assert npu.call("new_zeros", x, [5]).exact() == 5
    assert npu.call("scalar_tensor", 2, dtype=dtype).exact() == 1


@pytest.mark.parametrize("value", [float("inf"), float("nan"), 65504.0, -0.0, 1e-8])
@pytest.mark.parametrize("dtype", TYPES[:3], ids=str)
def test_fills_round_as_torch(npu: TorchBench, dtype: torch.dtype, value: float) -> None:
    assert npu.call("fill.Scalar", torch.zeros(3, dtype=dtype), value).exact() == 3


@sums_type
def test_ranges_and_triangles(npu: TorchBench, dtype: torch.dtype) -> None:
    assert npu.call("arange", 10, dtype=dtype).exact() == 10
    assert npu.call("arange.start_step", 3, -20, -2, dtype=dtype).exact() == 12
    for x in layouts(numbers(3, 4, 5, dtype=dtype)).values():
        for diagonal in (-2, 0, 1):
            assert npu.call("tril", x, diagonal).exact() == 60
            assert npu.call("triu", x, diagonal).exact() == 60


# ---------------------------------------------------------------------- indices
@every_type
def test_reading_by_index(npu: TorchBench, dtype: torch.dtype) -> None:
    for x in layouts(numbers(4, 6, dtype=dtype)).values():
        for index in (INDEX, INDEX.t(), INDEX.int(), INDEX[:0], INDEX[0, 0]):
            assert npu.call("embedding", x, index).exact() == 6 * index.numel()
        assert npu.call("index_select", x, 1, torch.tensor([5, 0])).exact() == 8
        assert npu.call("gather", x, 1, INDEX).exact() == 6
        assert npu.call("gather", x, 0, torch.tensor([[3]])).exact() == 1
        assert npu.call("index.Tensor", x, [None, -INDEX - 1]).exact() == 24
        assert npu.call("index.Tensor", x, [INDEX, INDEX]).exact() == 6


def test_an_embedding_is_one_packet(npu: TorchBench) -> None:
    answer = npu.call("embedding", numbers(9, 32), torch.tensor([[1, 8, 0, 3]]))
    assert answer.exact() == 128
    assert [packet.opcode for packet in answer.program.packets] == [Opcode.GATHER]


def test_indices_in_the_middle(npu: TorchBench) -> None:
    x = numbers(2, 3, 4, 5)
    pair: list[Any] = [None, torch.tensor([0, 1, -1]), torch.tensor([[2], [-1]])]
    assert npu.call("index.Tensor", x, pair).exact() == 60
    assert npu.call("index_select", x, 2, torch.tensor([3, 0])).exact() == 60


@every_type
def test_writing_by_index(npu: TorchBench, dtype: torch.dtype) -> None:
    values = numbers(4, 6, dtype=dtype, seed=1)
    for x in layouts(numbers(4, 6, dtype=dtype)).values():
        places = torch.tensor([[1, 0, 3], [2, 5, 4]])
        assert npu.call("scatter.src", x, 1, places, values).exact() == 24
        assert npu.call("scatter.value", x, 0, INDEX, 1).exact() == 24
        assert npu.call("index_copy", x, 0, torch.tensor([3, 1]), values[:2]).exact() == 24
        assert npu.call("index_put", x, [torch.tensor([0, -1])], values[0]).exact() == 24
        assert npu.call("index_put", x, [None, torch.tensor([5, 1])], values[:, :2]).exact() == 24
        assert npu.call("index_put", x, [torch.tensor([0, 1])] * 2, values[0, :1]).exact() == 24


@sums_type
def test_adding_by_index(npu: TorchBench, dtype: torch.dtype) -> None:
    values = numbers(4, 6, dtype=dtype, seed=1)
    for x in layouts(numbers(4, 6, dtype=dtype)).values():
        assert npu.call("scatter_add", x, 1, INDEX, values).close(2) == 24
        assert npu.call("index_add", x, 1, torch.tensor([3, 3]), values[:, :2]).close(2) == 24
        doubled = npu.call("index_put", x, [torch.tensor([0, 0])], values[:2], True)
        assert doubled.close(2) == 24


@pytest.mark.parametrize("padding", [-1, 2])
def test_the_gradient_of_an_embedding(npu: TorchBench, padding: int) -> None:
    gradient = numbers(2, 3, 6)
    args = (gradient, INDEX, 5, padding, False)
    assert npu.call("embedding_dense_backward", *args).close(2) == 30


# ---------------------------------------------------------------------- order
@pytest.mark.parametrize("dtype", [*TYPES[:3], torch.int32, torch.int64], ids=str)
def test_sorting_is_stable_and_puts_nan_last(npu: TorchBench, dtype: torch.dtype) -> None:
    x = numbers(4, 7, dtype=dtype)
    if dtype.is_floating_point:
        x[1, 2], x[2, 3], x[2, 5] = float("nan"), -0.0, 0.0
    x[3] = 1
    for view in layouts(x).values():
        for dim in (0, 1):
            for descending in (False, True):
                kwargs = {"stable": True, "dim": dim, "descending": descending}
                assert npu.call("sort.stable", view, **kwargs).exact() == 56


def test_the_largest_and_the_smallest(npu: TorchBench) -> None:
    x = torch.randperm(120).reshape(4, 30).float()
    assert npu.call("topk", x, 3).exact() == 24
    assert npu.call("topk", x, 2, 0, False).exact() == 120
    assert npu.call("argsort", x).exact() == 120
    assert npu.call("sort", torch.tensor(2.0)).exact() == 2
