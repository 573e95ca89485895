# SPDX-License-Identifier: Apache-2.0
"""Division of int64 by packets against torch's, on the cmodel."""

from __future__ import annotations

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lower_torch import TorchBench
from test_lower_int64 import edges, long
from test_lower_int64_rows import wide

from driver.lower.builder import ProgramBuilder
from driver.lower.long_divide import divide

MODES = [(remainder, floor) for remainder in (False, True) for floor in (False, True)]
modes = pytest.mark.parametrize(("remainder", "floor"), MODES)


def divided(
    npu: TorchBench, x: torch.Tensor, y: torch.Tensor | int, *, remainder: bool, floor: bool
) -> torch.Tensor:
    """What the packets make of it."""
    shape = x.shape if isinstance(y, int) else torch.broadcast_shapes(x.shape, y.shape)
    answer = torch.empty(shape, dtype=torch.int64)
    out = npu.result(answer)
    builder = ProgramBuilder("aten.divide", npu.device.config)
    divisor = y if isinstance(y, int) else npu.view(y)
    divide(builder, out, npu.view(x), divisor, remainder=remainder, floor=floor)
    npu.device.execute(builder.program())
    return npu.fetch(out, answer)


def expected(x: torch.Tensor, y: torch.Tensor, *, remainder: bool, floor: bool) -> torch.Tensor:
    """torch's answer."""
    if remainder:
        return torch.remainder(x, y) if floor else torch.fmod(x, y)
    return torch.div(x, y, rounding_mode="floor" if floor else "trunc")


@modes
def test_edges_and_numbers_of_all_lengths(npu: TorchBench, remainder: bool, floor: bool) -> None:
    x, y = edges()
    x, y = torch.cat([x, wide(3000)]), torch.cat([y, wide(3000, seed=1)])
    y = torch.where((y == 0) | ((x == -(1 << 63)) & (y == -1)), 1, y)
    found = divided(npu, x, y, remainder=remainder, floor=floor)
    assert torch.equal(found, expected(x, y, remainder=remainder, floor=floor))


@modes
def test_narrow_and_broadcast_divisors(npu: TorchBench, remainder: bool, floor: bool) -> None:
    x = wide(4, 9)
    for y in (torch.tensor([[3], [-7], [1], [-128]], dtype=torch.int8), torch.tensor(1 << 40)):
        found = divided(npu, x, y, remainder=remainder, floor=floor)
        assert torch.equal(found, expected(x, y.long(), remainder=remainder, floor=floor))


@modes
@pytest.mark.parametrize("number", [1, 2, 1 << 20, 1 << 40, 1 << 62, 3, -4, -1])
def test_divisors_that_are_numbers(
    npu: TorchBench, remainder: bool, floor: bool, number: int
) -> None:
    x = wide(3, 40)
    found = divided(npu, x, number, remainder=remainder, floor=floor)
    assert torch.equal(found, expected(x, torch.tensor(number), remainder=remainder, floor=floor))


def test_the_least_number_by_minus_one_wraps(npu: TorchBench) -> None:
    x = torch.tensor([-(1 << 63)])
    assert torch.equal(divided(npu, x, torch.tensor(-1), remainder=False, floor=True), x)


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.tuples(long, long.filter(bool)), min_size=1), st.sampled_from(MODES))
def test_any_numbers(
    npu: TorchBench, pairs: list[tuple[int, int]], mode: tuple[bool, bool]
) -> None:
    x, y = (torch.tensor(side) for side in zip(*pairs, strict=True))
    y = torch.where((x == -(1 << 63)) & (y == -1), 1, y)
    remainder, floor = mode
    found = divided(npu, x, y, remainder=remainder, floor=floor)
    assert torch.equal(found, expected(x, y, remainder=remainder, floor=floor))
