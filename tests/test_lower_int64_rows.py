# SPDX-License-Identifier: Apache-2.0
"""int64 beyond 32 bits on the cmodel, over rows: sums, extremes, order, running sums."""

from __future__ import annotations

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lower_torch import TorchBench, layouts, numbers
from test_lower_int64 import EDGES, long

_I64 = torch.int64


def wide(*sizes: int, seed: int = 0) -> torch.Tensor:
    """Numbers of all lengths, and some with few different high words."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randint(-(1 << 63), (1 << 63) - 1, sizes, generator=generator)
    x = x >> torch.randint(0, 63, sizes, generator=generator)
    near = torch.randint(-2, 2, sizes, generator=generator) << 32
    near += torch.randint(0, 1 << 32, sizes, generator=generator)
    return torch.where(torch.rand(sizes, generator=generator) < 0.5, x, near)


DIMS = ([0], [1], [2], [0, 2], [0, 1], [1, 2], [0, 1, 2])


@pytest.mark.parametrize("dims", DIMS, ids=str)
@pytest.mark.parametrize("op", ["sum.dim_IntList", "amax", "amin"])
def test_dimensions_and_layouts(npu: TorchBench, op: str, dims: list[int]) -> None:
    for x in layouts(wide(3, 5, 7)).values():
        assert npu.call(op, x, dims).exact() > 0
        assert npu.call(op, x, dims, True).exact() > 0


@pytest.mark.parametrize("dtype", [torch.int32, torch.int8, torch.uint8, torch.bool], ids=str)
def test_sums_of_narrow_integers_are_int64(npu: TorchBench, dtype: torch.dtype) -> None:
    x = wide(4, 37).to(dtype)
    assert npu.call("sum", x).exact() == 1
    assert npu.call("sum.dim_IntList", x, [1]).exact() == 4
    if dtype is not torch.bool:
        full = torch.full((2, 70), torch.iinfo(dtype).max, dtype=dtype)
        assert npu.call("sum.dim_IntList", full, [1]).exact() == 2
        assert npu.call("cumsum", full, 1).exact() == 140


def test_sums_of_floats_as_integers(npu: TorchBench) -> None:
    x = numbers(3, 9) * 1e9
    assert npu.call("sum.dim_IntList", x, [1], False, dtype=_I64).exact() == 3


@pytest.mark.parametrize("count", [65535, 65536, 65537, 200_000])
def test_long_sums_lose_no_carry(npu: TorchBench, count: int) -> None:
    assert npu.call("sum", torch.full((count,), -1)).exact() == 1
    assert npu.call("sum", torch.full((count,), (1 << 32) - 1)).exact() == 1
    assert npu.call("sum", torch.full((count,), 255, dtype=torch.uint8)).exact() == 1


@pytest.mark.parametrize("op", ["max.dim", "min.dim", "argmax", "argmin"])
def test_extremes_and_where_they_are(npu: TorchBench, op: str) -> None:
    x = wide(6, 41)
    x[:, 30:] = x[:, 10:21]  # equal elements: the first counts
    equal_high = (torch.arange(33) * 0x9E37_79B9 % (1 << 32)).repeat(2, 1) + (5 << 32)
    edges = torch.tensor(EDGES).repeat(2, 1)
    for rows in (x, equal_high, -equal_high, edges):
        for dim in (0, 1):
            assert npu.call(op, rows, dim).exact() > 0
        assert npu.call(op, rows, 1, True).exact() > 0
    if op.startswith("arg"):
        assert npu.call(op, x).exact() == 1


@pytest.mark.parametrize("op", ["any", "all"])
def test_truth_looks_at_both_words(npu: TorchBench, op: str) -> None:
    x = torch.tensor([[0, 1 << 32, 0], [1 << 40, 1, -1], [0, 0, 0]])
    assert npu.call(f"{op}.dim", x, 1).exact() == 3
    assert npu.call(op, x).exact() == 1


def test_running_sums(npu: TorchBench) -> None:
    for x in layouts(wide(4, 21)).values():
        assert npu.call("cumsum", x, 1).exact() == 84
        assert npu.call("cumsum", x, 0).exact() == 84


@pytest.mark.parametrize("descending", [False, True])
def test_order(npu: TorchBench, descending: bool) -> None:
    for x in (wide(3, 50), torch.tensor(EDGES).repeat(2, 2), wide(1, 700)):
        call = npu.call("sort.stable", x, stable=True, dim=1, descending=descending)
        assert call.exact() == 2 * x.numel()
        values = npu.call("topk", x, 5, 1, descending)
        found, _ = values.found
        expected, _ = values.expected
        assert found is not None and expected is not None
        assert torch.equal(found, expected)


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(long, min_size=1, max_size=50))
def test_any_rows(npu: TorchBench, row: list[int]) -> None:
    x = torch.tensor(row)
    for op in ("sum", "max", "min", "argmax", "argmin"):
        assert npu.call(op, x).exact() == 1
