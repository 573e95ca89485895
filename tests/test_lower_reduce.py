# SPDX-License-Identifier: Apache-2.0
"""Reductions, softmax and normalisations on the cmodel against torch; their packets."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from lower_torch import TorchBench, layouts, numbers

FLOATS = (torch.float32, torch.float16, torch.bfloat16)
INTS = (torch.int32, torch.int64, torch.uint8)
floats = pytest.mark.parametrize("dtype", FLOATS, ids=str)

DIMS: list[tuple[Any, ...]] = [([0, 2],), ([-1], True), ([0],), ([1],), ([0, 1, 2],), ([2, 1],)]


@floats
@pytest.mark.parametrize("op", ["sum", "mean", "amax", "amin", "var", "std"])
def test_over_any_dimensions(npu: TorchBench, dtype: torch.dtype, op: str) -> None:
    overload = {
        **{"sum": "sum.dim_IntList", "mean": "mean.dim"},
        **{"var": "var.correction", "std": "std.correction"},
    }.get(op, op)
    for x in layouts(numbers(4, 6, 5, dtype=dtype).round()).values():
        for dim, *keep in DIMS:
            kwargs = {"keepdim": True} if keep else {}
            answer = npu.call(overload, x, dim, **kwargs)
            assert (answer.exact() if op.startswith("am") else answer.close(8)) >= 1


@floats
@pytest.mark.parametrize(
    "op", ["sum", "mean", "max", "min", "var.correction", "argmax", "argmin", "any", "all"]
)
def test_over_everything(npu: TorchBench, dtype: torch.dtype, op: str) -> None:
    for x in layouts(numbers(4, 6, 5, dtype=dtype).round()).values():
        assert npu.call(op, x).close(8) == 1
    assert npu.call("sum", numbers(dtype=dtype)).exact() == 1
    assert npu.call("argmax", numbers(dtype=dtype)).exact() == 1


@pytest.mark.parametrize("rows", [1, 2, 15, 16, 17, 33, 1000])
def test_rows_of_any_length(npu: TorchBench, rows: int) -> None:
    x = torch.randint(-9, 9, (3, rows)).float()
    assert npu.call("sum.dim_IntList", x, [1]).exact() == 3
    assert npu.call("cumsum", x, 1).exact() == 3 * rows
    assert npu.call("argmax", x, 1).exact() == 3


@pytest.mark.parametrize("dtype", [*INTS, torch.bool], ids=str)
def test_integers(npu: TorchBench, dtype: torch.dtype) -> None:
    x = numbers(4, 6, dtype=dtype)
    assert npu.call("sum", x).exact() == 1
    assert npu.call("sum.dim_IntList", x, [0]).exact() == 6
    assert npu.call("amax", x, [1]).exact() == 4
    assert npu.call("cumsum", x, 1).exact() == 24
    assert npu.call("all.dim", x, 1).exact() == 4
    if dtype is not torch.bool:
        assert npu.call("argmin", x, 1).exact() == 4
        assert npu.call("max.dim", x, 0).exact() == 12


@floats
def test_extremes_come_with_the_first_index_and_let_nan_win(
    npu: TorchBench, dtype: torch.dtype
) -> None:
    x = numbers(4, 6, 5, dtype=dtype)
    x[1, 2, 3] = x[0, 0, 0] = float("nan")
    x[2, 1:4] = 100
    for dim in (0, 1, 2):
        assert npu.call("max.dim", x, dim).exact() == 2 * 120 // x.shape[dim]
        assert npu.call("min.dim", x, dim, True).exact() == 2 * 120 // x.shape[dim]
        assert npu.call("argmax", x, dim, True).exact() == 120 // x.shape[dim]
    assert npu.call("argmax", x).exact() == 1


@floats
def test_running_sums(npu: TorchBench, dtype: torch.dtype) -> None:
    for x in layouts(numbers(4, 6, 5, dtype=dtype)).values():
        for dim in (0, 1, 2):
            assert npu.call("cumsum", x, dim).close(8) == 120


def test_nothing_to_reduce(npu: TorchBench) -> None:
    empty = torch.zeros(0, 3)
    assert npu.call("sum.dim_IntList", empty, [0]).exact() == 3
    assert npu.call("mean.dim", empty, [0]).exact() == 3
    assert npu.call("var.correction", empty, [0]).exact() == 3
    assert npu.call("any.dim", empty, 0).exact() == 3
    assert npu.call("sum", empty).exact() == 1
    assert npu.call("var.correction", torch.ones(1, 3), [0]).exact() == 3


# ---------------------------------------------------------------------- softmax, normalisations
@floats
@pytest.mark.parametrize("op", ["_softmax", "_log_softmax"])
def test_softmax(npu: TorchBench, dtype: torch.dtype, op: str) -> None:
    for x in layouts(numbers(4, 6, 5, dtype=dtype)).values():
        for dim in (0, 1, -1):
            answer = npu.call(op, x, dim, False)
            assert answer.close(8) == 120
            assert len(answer.program.packets) == {"_softmax": 5, "_log_softmax": 4}[op]
    assert npu.call(op, numbers(dtype=dtype), 0, False).exact() == 1


def test_softmax_of_masked_rows(npu: TorchBench) -> None:
    x = torch.tensor([[0.0, float("-inf"), 1.0], [float("-inf")] * 3])
    assert npu.call("_softmax", x, 1, False).close(4) == 6


@floats
def test_layer_norm(npu: TorchBench, dtype: torch.dtype) -> None:
    for x in layouts(numbers(4, 6, 5, dtype=dtype)).values():
        weight, bias = numbers(5, dtype=dtype), numbers(5, dtype=dtype, seed=1)
        for given in ((weight, bias), (weight, None), (None, bias), (None, None)):
            answer = npu.call("native_layer_norm", x, [5], *given, 1e-5)
            assert answer.close(8) == 120 + 24 + 24
        answer = npu.call("native_layer_norm", x, [6, 5], None, None, 1e-5)
        assert answer.close(8) == 120 + 4 + 4


@floats
def test_rms_norm(npu: TorchBench, dtype: torch.dtype) -> None:
    weight = numbers(5, dtype=dtype)
    for x in layouts(numbers(4, 6, 5, dtype=dtype)).values():
        assert npu.call("rms_norm", x, [5], weight, 1e-5).close(8) == 120
        assert npu.call("rms_norm", x, [5]).close(8) == 120
        answer = npu.call("_fused_rms_norm", x, [5], weight, 1e-5)
        assert answer.close(8) == 120 + 24
        assert len(answer.program.packets) <= 4


@floats
def test_batch_norm_for_inference(npu: TorchBench, dtype: torch.dtype) -> None:
    weight, mean = numbers(6, dtype=dtype), numbers(6, dtype=dtype, seed=1)
    for sizes in ((4, 6), (4, 6, 5), (2, 6, 3, 5)):
        for x in layouts(numbers(*sizes, dtype=dtype)).values():
            for affine in ((weight, mean), (weight, None), (None, None)):
                args = (x, *affine, mean, mean.abs(), False, 0.1, 1e-5)
                assert npu.call("native_batch_norm", *args).close(16) == x.numel()
            args = (x, weight, mean, mean, mean.abs(), 0.1, 1e-5)
            answer = npu.call("_native_batch_norm_legit_no_training", *args)
            assert answer.close(16) == x.numel()


@floats
def test_group_norm(npu: TorchBench, dtype: torch.dtype) -> None:
    x, weight = numbers(2, 6, 5, 3, dtype=dtype), numbers(6, dtype=dtype)
    for given in ((weight, weight), (None, None)):
        answer = npu.call("native_group_norm", x, *given, 2, 6, 15, 3, 1e-5)
        assert answer.close(8) == 180 + 6 + 6
