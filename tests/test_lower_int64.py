# SPDX-License-Identifier: Apache-2.0
"""int64 beyond 32 bits on the cmodel: every bit as torch has it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lower_torch import TorchBench, layouts, numbers

from driver.lower import lower
from driver.lower.registry import overload

_I64 = torch.int64
_MIN, _MAX = -(1 << 63), (1 << 63) - 1
EDGES = (
    *(0, 1, -1, 2, -3, 255, (1 << 31) - 1, 1 << 31, (1 << 31) + 1, -(1 << 31), -(1 << 31) - 1),
    *((1 << 32) - 1, 1 << 32, (1 << 32) + 1, -(1 << 32), -(1 << 32) + 1, -(1 << 32) - 1),
    *((1 << 40) + 5, (1 << 40) + 6, (1 << 40) + (1 << 31), -(1 << 40), 3 << 61, -(3 << 61)),
    *(_MAX, _MAX - 1, _MIN, _MIN + 1, 0x1234_5678_9ABC_DEF0, 0x7FFF_FFFF_0000_0000),
)
"""Carries, equal high words, low words with the sign bit set, the ends of the range."""


def edges() -> tuple[torch.Tensor, torch.Tensor]:
    """All pairs of EDGES."""
    line = torch.tensor(EDGES)
    count = len(EDGES)
    return line.repeat_interleave(count), line.repeat(count)


PAIRS = len(EDGES) ** 2
BINARY = (
    *("add.Tensor", "sub.Tensor", "rsub.Tensor", "mul.Tensor", "maximum", "minimum", "max.other"),
    *(f"{name}.Tensor" for name in ("eq", "ne", "lt", "le", "gt", "ge")),
    *("logical_and", "logical_or", "logical_xor"),
    *(f"bitwise_{name}.Tensor" for name in ("and", "or", "xor")),
)


@pytest.mark.parametrize("op", BINARY)
def test_two_tensors(npu: TorchBench, op: str) -> None:
    x, y = edges()
    assert npu.call(op, x, y).exact() == PAIRS
    grid = torch.tensor(EDGES[:24]).reshape(2, 3, 4)
    for other in layouts(grid.flip(0)).values():
        for first in layouts(grid).values():
            assert npu.call(op, first, other[:, :1]).exact() == 24


@pytest.mark.parametrize(
    ("op", "dtype"),
    [
        (op, dtype)
        for op in BINARY
        for dtype in (torch.int32, torch.int8, torch.uint8, torch.bool)
        if not (dtype is torch.bool and "sub" in op)  # torch has no difference of truth values
    ],
    ids=str,
)
def test_a_narrow_operand(npu: TorchBench, op: str, dtype: torch.dtype) -> None:
    x, y = torch.tensor(EDGES), numbers(len(EDGES), dtype=dtype)
    assert npu.call(op, x, y).exact() == len(EDGES)
    assert npu.call(op, y, x).exact() == len(EDGES)


UNARY = ("neg", "abs", "bitwise_not", "logical_not", "clone", "relu")


@pytest.mark.parametrize("op", UNARY)
def test_one_tensor(npu: TorchBench, op: str) -> None:
    for x in layouts(torch.tensor(EDGES[:28]).reshape(4, 7)).values():
        assert npu.call(op, x).exact() == 28


@pytest.mark.parametrize("number", [0, 1, -1, 7, 1 << 31, (1 << 40) + 5, -(1 << 32), _MAX, _MIN])
@pytest.mark.parametrize(
    "op", ["add", "sub", "rsub", "mul", "eq", "ne", "lt", "le", "gt", "ge", "bitwise_xor"]
)
def test_a_number(npu: TorchBench, op: str, number: int) -> None:
    assert npu.call(f"{op}.Scalar", torch.tensor(EDGES), number).exact() == len(EDGES)


@pytest.mark.parametrize("alpha", [1, -1, 3, 1 << 33])
def test_scaled_sums(npu: TorchBench, alpha: int) -> None:
    x, y = edges()
    for op in ("add.Tensor", "sub.Tensor", "rsub.Tensor"):
        assert npu.call(op, x, y, alpha=alpha).exact() == PAIRS


@pytest.mark.parametrize(
    "op", ["add_.Tensor", "sub_.Tensor", "mul_.Tensor", "bitwise_xor_.Tensor", "neg_", "abs_"]
)
def test_in_place(npu: TorchBench, op: str) -> None:
    """A word is overwritten only after its last reader."""
    x, y = edges()
    operands = (x.clone(), y) if op.endswith(".Tensor") else (x.clone(),)
    view = npu.view(operands[0])
    expected = in_place(npu, op, operands)
    assert torch.equal(npu.fetch(view, expected), expected)
    if op.endswith(".Tensor"):
        both = x.clone()
        view = npu.view(both)
        expected = in_place(npu, op, (both, both))
        assert torch.equal(npu.fetch(view, expected), expected)


def in_place(npu: TorchBench, op: str, operands: tuple[Any, ...]) -> torch.Tensor:
    """Run an op that overwrites its first operand; torch's answer."""
    views = [npu.argument(value) for value in operands]
    npu.device.execute(lower(overload(op), views, {}, [views[0]], npu.device.config))
    namespace, name, which = overload(op).split(".")
    answer = getattr(getattr(getattr(torch.ops, namespace), name), which)(*operands)
    assert isinstance(answer, torch.Tensor)
    return answer


@pytest.mark.parametrize(
    ("low", "high"),
    [(-(1 << 40), 1 << 40), (0, None), (None, (1 << 32) - 1), (_MIN, _MAX), (5, -(1 << 50))],
)
def test_clamp(npu: TorchBench, low: int | None, high: int | None) -> None:
    x = torch.tensor(EDGES)
    assert npu.call("clamp", x, low, high).exact() == len(EDGES)
    bounds = [None if value is None else torch.tensor(value) for value in (low, high)]
    assert npu.call("clamp.Tensor", x, *bounds).exact() == len(EDGES)


def test_choices(npu: TorchBench) -> None:
    x, y = edges()
    mask = torch.arange(PAIRS) % 3 == 0
    assert npu.call("where.self", mask, x, y).exact() == PAIRS
    assert npu.call("where.self", mask, x, y.int()).exact() == PAIRS
    for value in (0, -1, 1 << 35, _MIN):
        assert npu.call("masked_fill.Scalar", x, mask, value).exact() == PAIRS
        assert npu.call("masked_fill.Tensor", x, mask, torch.tensor(value)).exact() == PAIRS
        assert npu.call("full", [3, 5], value, dtype=_I64).exact() == 15
        assert npu.call("fill.Scalar", x, value).exact() == PAIRS
        assert npu.call("constant_pad_nd", x.reshape(29, 29), [1, 2], value).exact() > PAIRS


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_to_floats_rounded_once(npu: TorchBench, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(1)
    x = torch.randint(_MIN, _MAX, (4000,), generator=generator)
    x = x >> torch.randint(0, 63, (4000,), generator=generator)
    ties = torch.tensor([(1 << 24) + 1, (1 << 25) + 2, (1 << 25) + 6])
    near = torch.cat([(ties << shift) + add for shift in range(38) for add in (-1, 0, 1)])
    x = torch.cat([torch.tensor(EDGES), x, near, -near])
    assert npu.call("_to_copy", x, dtype=dtype).exact() == len(x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_from_floats_towards_zero(npu: TorchBench, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(4000, generator=generator) * 2.0 ** torch.randint(
        -3, 62, (4000,), generator=generator
    )
    some = torch.tensor([0.0, -0.0, 3e9, -3e9, 2.0**31, 2.0**32, -(2.0**31), 2.0**62, -(2.0**63)])
    x = torch.cat([x, some]).to(dtype)
    x = x[(x.double() < 2.0**63) & (x.double() >= -(2.0**63))]
    assert len(x) > 1000
    assert npu.call("_to_copy", x, dtype=_I64).exact() == len(x)


def test_floats_beyond_int64_saturate_and_nan_is_0(npu: TorchBench) -> None:
    x = torch.tensor([2.0**63, -(2.0**64), float("inf"), float("-inf"), float("nan")])
    (found,) = npu.call("_to_copy", x, dtype=_I64).found
    assert found is not None and found.tolist() == [_MAX, _MIN, _MAX, _MIN, 0]


@pytest.mark.parametrize("dtype", [torch.int32, torch.int8, torch.uint8, torch.bool], ids=str)
def test_between_integers(npu: TorchBench, dtype: torch.dtype) -> None:
    for x in layouts(torch.tensor(EDGES[:28]).reshape(4, 7)).values():
        assert npu.call("_to_copy", x, dtype=dtype).exact() == 28
    narrow = torch.tensor(EDGES).to(dtype)
    assert npu.call("_to_copy", narrow, dtype=_I64).exact() == len(EDGES)


long = st.one_of(
    st.sampled_from(EDGES),
    st.integers(_MIN, _MAX),
    st.integers(0, 63).flatmap(lambda bits: st.integers(-(1 << bits), (1 << bits) - 1)),
)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.tuples(long, long), min_size=1, max_size=40), st.sampled_from(BINARY))
def test_any_numbers(npu: TorchBench, pairs: list[tuple[int, int]], op: str) -> None:
    x, y = (torch.tensor(side) for side in zip(*pairs, strict=True))
    assert npu.call(op, x, y).exact() == len(pairs)


@pytest.mark.parametrize(
    ("start", "end", "step"),
    [
        ((1 << 40) + 3, (1 << 40) + 40, 1),
        (5, -(1 << 40), -(1 << 36)),
        ((1 << 31) - 3, (1 << 31) + 19, 2),
        (-(1 << 62), 1 << 61, (1 << 59) + 12345),
        (-7, 30, 3),
    ],
)
def test_ranges(npu: TorchBench, start: int, end: int, step: int) -> None:
    assert npu.call("arange.start_step", start, end, step).exact() > 7


def test_moves_keep_all_bits(npu: TorchBench) -> None:
    x = torch.tensor(EDGES[:28]).reshape(4, 7)
    place = torch.randint(0, 7, (4, 5), generator=torch.Generator().manual_seed(3))
    once = torch.tensor([[3, 0], [1, 6], [2, 4], [5, 3]])
    for source in layouts(x).values():
        for diagonal in (0, -1, 2):
            assert npu.call("tril", source, diagonal).exact() == 28
            assert npu.call("triu", source, diagonal).exact() == 28
        assert npu.call("cat", [source, source.int()], 1).exact() == 56
        assert npu.call("stack", [source, source]).exact() == 56
        assert npu.call("repeat", source, [2, 3]).exact() == 168
        assert npu.call("gather", source, 1, place).exact() == 20
        assert npu.call("index.Tensor", source, [once[:, 0] % 4]).exact() == 28
        assert npu.call("scatter.src", source, 1, once, x[:, 2:4]).exact() == 28
        assert npu.call("scatter.value", source, 1, once, -(1 << 40)).exact() == 28
        assert npu.call("index_put", source, [once[:, 0] % 4], x[0]).exact() == 28


@pytest.mark.parametrize("value", [10, -1, 2.5, 256, 0, False])
def test_truth_values_are_0_and_1(npu: TorchBench, value: float) -> None:
    """Whatever number is put among truth values."""
    x = torch.tensor([[True, False, True], [False, True, False]])
    mask, place = ~x, torch.tensor([[1], [2]])
    calls = [
        npu.call("masked_fill.Scalar", x, mask, value),
        npu.call("masked_fill.Tensor", x, mask, torch.tensor(bool(value))),
        npu.call("constant_pad_nd", x, [1, 2], value),
        npu.call("scatter.value", x, 1, place, value),
        npu.call("fill.Scalar", x, value),
        npu.call("fill_.Scalar", x.clone(), value),
        npu.call("full", [2, 3], value, dtype=torch.bool),
        npu.call("full_like", x, value),
        npu.call("new_full", x, [4], value),
        npu.call("fill.Tensor", x, torch.tensor(value)),
        npu.call("copy", x, torch.tensor(value)),
    ]
    for call in calls:
        found, _ = call.pair
        assert found.view(torch.uint8).max() <= 1
        assert call.exact() >= 4


@pytest.mark.parametrize("alpha", [True, False])
def test_sums_of_truth_values_heed_alpha(npu: TorchBench, alpha: bool) -> None:
    x, y = torch.tensor([True, True, False, False]), torch.tensor([True, False, True, False])
    assert npu.call("add.Tensor", x, y, alpha=alpha).exact() == 4
    assert npu.call("add.Scalar", x, True, alpha).exact() == 4


COUNTS = (0, 1, 31, 32, 33, 63, 64, 70, -1, 1 << 32)


@pytest.mark.parametrize("op", ["bitwise_left_shift", "bitwise_right_shift"])
@pytest.mark.parametrize("dtype", [_I64, torch.int32, torch.int8, torch.uint8], ids=str)
def test_shifts_beyond_the_width(npu: TorchBench, op: str, dtype: torch.dtype) -> None:
    x = torch.tensor(EDGES).to(dtype)
    for count in COUNTS:
        if count < 1 << 31 or dtype is _I64:
            assert npu.call(f"{op}.Tensor_Scalar", x, count).exact() == len(EDGES)
    counts = torch.tensor(COUNTS).repeat(3)[: len(EDGES)]
    assert npu.call(f"{op}.Tensor", x, counts).exact() == len(EDGES)


def test_numbers_wrap_to_the_type_of_bytes(npu: TorchBench) -> None:
    x = torch.tensor([0, 5, 44, 255], dtype=torch.uint8)
    for op, number in (("eq", -1), ("lt", 300), ("ge", -1), ("ne", 261)):
        assert npu.call(f"{op}.Scalar", x, number).exact() == 4
    assert npu.call("clamp", x, -1, None).exact() == 4


def test_sums_by_index(npu: TorchBench) -> None:
    place = torch.arange(len(EDGES)) % 3
    start = torch.tensor([1, -1, _MAX])
    assert npu.call("scatter_add", start, 0, place, torch.tensor(EDGES)).exact() == 3
    many = torch.full((70_000,), -1)
    assert npu.call("scatter_add", start, 0, torch.zeros_like(many), many).exact() == 3
    assert npu.call("index_put", start, [place], torch.tensor(EDGES), True).exact() == 3


def test_numbers_promote_truth_values_to_int64(npu: TorchBench) -> None:
    x = torch.tensor([[True, False, True], [False, False, True]])
    for op, number in (("add", 1), ("add", 1 << 40), ("mul", 5), ("mul", -(1 << 33))):
        found, _ = (call := npu.call(f"{op}.Scalar", x, number)).pair
        assert found.dtype is _I64 and call.exact() == 6
    for number in (0, 1, 2):
        assert npu.call("eq.Scalar", x, number).exact() == 6


def test_a_narrow_result_keeps_the_low_word(npu: TorchBench) -> None:
    """In place the result's type is self's, whatever is added."""
    x, y = torch.arange(len(EDGES), dtype=torch.int32), torch.tensor(EDGES)
    for op in ("add_.Tensor", "sub_.Tensor", "mul_.Tensor", "bitwise_xor_.Tensor"):
        own = x.clone()
        view = npu.view(own)
        expected = in_place(npu, op, (own, y))
        assert torch.equal(npu.fetch(view, expected), expected)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int8, torch.uint8], ids=str)
@pytest.mark.parametrize("op", ["eq.Tensor", "lt.Tensor", "ge.Tensor", "maximum", "minimum"])
def test_a_tensor_without_dimensions_takes_the_type_of_the_other(
    npu: TorchBench, op: str, dtype: torch.dtype
) -> None:
    x = torch.tensor(EDGES).to(dtype)
    for number in (1 << 40, 300, -1, (1 << 31) + 5):
        assert npu.call(op, x, torch.tensor(number)).exact() == len(EDGES)
        assert npu.call(op, torch.tensor(number), x).exact() == len(EDGES)
        assert npu.call(op, x.bool(), torch.tensor(number)).exact() == len(EDGES)
