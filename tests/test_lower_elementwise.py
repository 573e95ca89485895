# SPDX-License-Identifier: Apache-2.0
"""Elementwise ops on the cmodel against torch: values, types, layouts, and how many packets."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
import torch
from lower_torch import TorchBench, layouts, numbers

from driver.isa import Opcode
from driver.lower import lower

FLOATS = (torch.float32, torch.float16, torch.bfloat16)
INTS = (torch.int8, torch.int32, torch.int64, torch.uint8)
floats = pytest.mark.parametrize("dtype", FLOATS, ids=str)
ints = pytest.mark.parametrize("dtype", INTS, ids=str)


ROUNDED_ONCE: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("add.Tensor", (1.5,), {}),
    ("add.Tensor", (1.5,), {"alpha": 2}),
    ("add_.Tensor", (-0.25,), {}),
    ("sub.Tensor", (0.5,), {}),
    ("rsub.Scalar", (1,), {}),
    ("mul.Tensor", (0.125,), {}),
    ("div.Tensor", (4,), {}),
    ("div.Tensor", (3,), {}),
    ("neg", (), {}),
    ("abs", (), {}),
    ("square", (), {}),
    ("reciprocal", (), {}),
    ("pow.Tensor_Scalar", (2,), {}),
    ("pow.Tensor_Scalar", (1,), {}),
    ("pow.Tensor_Scalar", (0,), {}),
    ("pow.Tensor_Scalar", (-1,), {}),
    ("clamp", (-0.5, 0.5), {}),
    ("clamp", (None, 0.5), {}),
    ("clamp_min", (0.25,), {}),
    ("hardtanh", (-1.0, 1.0), {}),
    ("isnan", (), {}),
    ("isinf", (), {}),
    ("logical_not", (), {}),
]


@floats
@pytest.mark.parametrize(("op", "args", "kwargs"), ROUNDED_ONCE)
def test_a_number_and_a_tensor(
    npu: TorchBench,
    dtype: torch.dtype,
    op: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> None:
    for x in layouts(numbers(3, 4, 5, dtype=dtype)).values():
        assert npu.call(op, x, *args, **kwargs).exact() == 60


@floats
@pytest.mark.parametrize(
    "op", ["add.Tensor", "sub.Tensor", "mul.Tensor", "div.Tensor", "maximum", "minimum"]
)
def test_two_tensors_of_any_layout_and_shape(npu: TorchBench, dtype: torch.dtype, op: str) -> None:
    for x in layouts(numbers(3, 4, 5, dtype=dtype)).values():
        for y in (*layouts(numbers(3, 4, 5, dtype=dtype, seed=1)).values(), x[:1], x[0, :, :1]):
            assert npu.call(op, x, y).exact() == 60


@floats
@pytest.mark.parametrize(
    ("op", "ulps"),
    [
        *(("sqrt", 1), ("rsqrt", 2), ("exp", 3), ("log", 3), ("sigmoid", 3), ("tanh", 3)),
        *(("sin", 3), ("cos", 3), ("silu", 3), ("erf", 3)),
    ],
)
def test_functions(npu: TorchBench, dtype: torch.dtype, op: str, ulps: int) -> None:
    for x in layouts(numbers(3, 4, 5, dtype=dtype).abs() + 0.0625).values():
        assert npu.call(op, x).close(ulps) == 60


def test_a_function_of_integers_is_that_of_floats(npu: TorchBench) -> None:
    assert npu.call("exp", torch.arange(5)).close(3) == 5
    assert npu.call("mul.Tensor", torch.arange(5), numbers(5)).exact() == 5
    assert npu.call("div.Tensor", torch.arange(5, dtype=torch.int8), 3).exact() == 5


INT_OPS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("add.Tensor", (2,), {"alpha": 3}),
    ("sub.Tensor", (1,), {}),
    ("mul.Tensor", (3,), {}),
    ("mul.Tensor", (0.5,), {}),
    ("add.Tensor", (1.5,), {}),
    ("neg", (), {}),
    ("abs", (), {}),
    ("pow.Tensor_Scalar", (3,), {}),
    ("clamp", (1, 3), {}),
    ("relu", (), {}),
    ("bitwise_not", (), {}),
    ("bitwise_and.Scalar", (5,), {}),
    ("lt.Scalar", (2,), {}),
    ("ge.Scalar", (1.5,), {}),
    ("logical_not", (), {}),
]


@ints
@pytest.mark.parametrize(("op", "args", "kwargs"), INT_OPS)
def test_integers_wrap_and_promote_as_torchs(
    npu: TorchBench,
    dtype: torch.dtype,
    op: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> None:
    x = numbers(3, 7, dtype=dtype)
    assert npu.call(op, x, *args, **kwargs).exact() == 21
    assert npu.call(op, x.t(), *args, **kwargs).exact() == 21


@pytest.mark.parametrize("op", ["add.Tensor", "mul.Tensor", "maximum", "bitwise_xor.Tensor"])
def test_integers_of_two_types(npu: TorchBench, op: str) -> None:
    for a, b in product(INTS, INTS):
        if {a, b} != {torch.int8, torch.uint8}:  # torch makes int16 of them
            assert npu.call(op, numbers(3, 7, dtype=a), numbers(7, dtype=b)).exact() == 21


@pytest.mark.parametrize(
    "op",
    [
        *("add.Tensor", "mul.Tensor", "logical_and", "logical_or", "logical_xor"),
        *("bitwise_and.Tensor", "bitwise_or.Tensor", "bitwise_xor.Tensor", "eq.Tensor"),
    ],
)
def test_truth_values(npu: TorchBench, op: str) -> None:
    x, y = numbers(4, 6, dtype=torch.bool), numbers(6, dtype=torch.bool)
    assert npu.call(op, x, y).exact() == 24


def test_not_turns_one_bit_of_a_truth_value_and_all_of_a_byte(npu: TorchBench) -> None:
    assert npu.call("bitwise_not", numbers(9, dtype=torch.bool)).exact() == 9
    assert npu.call("bitwise_not", numbers(9, dtype=torch.uint8)).exact() == 9


# ---------------------------------------------------------------------- comparisons, choices
@pytest.mark.parametrize("relation", ["lt", "le", "gt", "ge", "eq", "ne"])
@floats
def test_comparisons(npu: TorchBench, dtype: torch.dtype, relation: str) -> None:
    x = torch.tensor([[-1.0, 0.1, float("nan"), -0.0, float("inf"), 2.0]], dtype=dtype)
    y = x[:, [0, 2, 1, 3, 5, 4]]
    assert npu.call(f"{relation}.Tensor", x, y.t()).exact() == 36
    for number in (0.1, 0, float("inf")):
        assert npu.call(f"{relation}.Scalar", x, number).exact() == 6
    assert npu.call(f"{relation}.Tensor", x, torch.tensor(0.1)).exact() == 6
    assert npu.call(f"{relation}.Tensor", x, torch.tensor(2)).exact() == 6


def test_minus_zero_is_false(npu: TorchBench) -> None:
    x = torch.tensor([-0.0, 0.0, 1.0])
    assert npu.call("logical_not", x).exact() == 3
    assert npu.call("logical_xor_", x, torch.tensor(True)).exact() == 3  # floats, in place
    x = torch.tensor([-0.0, 0.0, 1.0])
    assert npu.call("logical_or", x, x).exact() == 3
    assert npu.call("_to_copy", x, dtype=torch.bool).exact() == 3


@floats
def test_choices(npu: TorchBench, dtype: torch.dtype) -> None:
    x, y = numbers(4, 6, dtype=dtype), numbers(6, dtype=dtype)
    mask = numbers(4, 1, dtype=torch.bool)
    assert npu.call("where.self", mask, x, y).exact() == 24
    assert npu.call("where.self", mask, x, torch.arange(6)).exact() == 24
    assert npu.call("masked_fill.Scalar", x, mask, -1e9 if dtype is not FLOATS[1] else 1).exact()
    assert npu.call("masked_fill.Tensor", x, mask, torch.tensor(2, dtype=dtype)).exact() == 24
    assert npu.call("clamp.Tensor", x, y - 1, y + 1).exact() == 24


# ---------------------------------------------------------------------- shapes and packets
@pytest.mark.parametrize("sizes", [(), (1,), (0,), (0, 3), (1, 1, 1), (15,), (16,), (17,), (257,)])
def test_edge_sizes(npu: TorchBench, sizes: tuple[int, ...]) -> None:
    x = numbers(*sizes)
    answer = npu.call("mul.Tensor", x, x)
    assert answer.exact() == x.numel()
    assert len(answer.program.packets) == (1 if x.numel() else 0)


def test_dense_operands_take_one_packet_and_no_descriptor(npu: TorchBench) -> None:
    x = numbers(3, 4, 5)
    program = npu.call("add.Tensor", x, x).program
    assert [packet.opcode for packet in program.packets] == [Opcode.VECTOR]
    assert program.packets[0].params[1] == 60
    assert program.sections == ()


def test_permuted_operands_of_one_layout_count_as_dense(npu: TorchBench) -> None:
    x = numbers(3, 4, 5).permute(2, 0, 1)
    answer = npu.call("add.Tensor", x, x)
    assert answer.exact() == 60
    assert answer.program.sections == ()


def test_more_dimensions_than_a_descriptor_has_become_several_packets(
    npu: TorchBench,
) -> None:
    x = numbers(2, 3, 4, 5, 3, 2).permute(5, 3, 1, 0, 2, 4)
    answer = npu.call("add.Tensor", x, numbers(2, 5, 3, 2, 1, 3).flatten().view(2, 5, 3, 2, 1, 3))
    assert answer.exact() == 720
    assert len(answer.program.packets) == 2


def test_a_quotient_by_a_power_of_two_is_a_product(npu: TorchBench) -> None:
    x = numbers(9)
    programs = [npu.call("div.Tensor", x, n).program.packets[0].params[0] for n in (8, 3)]
    assert programs[0] == npu.call("mul.Tensor", x, 0.125).program.packets[0].params[0]
    assert programs[1] != programs[0]


def test_in_place_ops_read_what_they_overwrite(npu: TorchBench) -> None:
    x, y = numbers(3, 4, 5), numbers(5)
    view = npu.view(x)
    program = lower("aten.add_.Tensor", [view, npu.view(y)], {}, [view], npu.device.config)
    npu.device.execute(program)
    assert torch.equal(npu.fetch(view, x), x + y)
