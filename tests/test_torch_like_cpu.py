# SPDX-License-Identifier: Apache-2.0
"""Calls in which torch's conversions, signs or ends decide: the same bits as on the CPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

Program = Callable[[str], Tensor]
_MOST = 2**31 - 1


def _tensor(*numbers: float, device: str, dtype: torch.dtype | None = None) -> Tensor:
    return torch.tensor(numbers, device=device, dtype=dtype)


def _added(add: Callable[..., Tensor], rank: int, number: int, dtype: torch.dtype) -> Program:
    """`add` of an int64 0 and the product of two numbers of another type."""

    def program(device: str) -> Tensor:
        start = torch.zeros((1,) * rank, dtype=torch.int64, device=device)
        factor = _tensor(number, device=device, dtype=dtype)
        return add(start, factor, factor)

    return program


def _clamped(dtype: torch.dtype, low: int, high: int, *numbers: int) -> Program:
    def program(device: str) -> Tensor:
        bounds = (torch.tensor(bound, device=device) for bound in (low, high))
        return torch.clamp(_tensor(*numbers, device=device, dtype=dtype), *bounds)

    return program


def _of_two(
    function: Callable[..., Tensor], left: tuple[float, ...], right: tuple[float, ...],
    dtype: torch.dtype = torch.float32,
) -> Program:  # fmt: skip
    def program(device: str) -> Tensor:
        pair = (_tensor(*numbers, device=device, dtype=dtype) for numbers in (left, right))
        return function(*pair)

    return program


def _beside_a_number(function: Callable[..., Tensor], dtype: torch.dtype) -> Program:
    """The second operand is a CPU tensor without dimensions."""
    return lambda device: function(
        _tensor(4, device=device, dtype=dtype), torch.tensor(6).to(dtype)
    )


_ZEROS = (
    (-0.0, 0.0, -0.0, 1.0, -1.0, 5.0, -7.0),
    (2.0, -3.0, -2.0, torch.inf, torch.inf, 0.0, 2.0),
)
PROGRAMS: dict[str, Program] = {
    "addcmul of int8 into int64": _added(torch.addcmul, 1, 100, torch.int8),
    "addcmul of int32 into int64": _added(torch.addcmul, 1, 1 << 20, torch.int32),
    "addr of int8 into int64": _added(torch.addr, 2, 100, torch.int8),
    "uint8 between numbers beyond it": _clamped(torch.uint8, 2, 300, 1, 100, 254),
    "int8 between numbers beyond it": _clamped(torch.int8, -200, 200, -100, 3, 100),
    "negative powers of int32": _of_two(
        torch.pow, (_MOST, -_MOST, 1, -1, -1, 2, 0), (-1, -1, -3, -3, -2, -1, -1), torch.int32
    ),
    "floored quotients of zeros": _of_two(torch.floor_divide, *_ZEROS),
    "divisors of the smallest int8": _of_two(
        torch.gcd, (1, 0, -128, 12), (-128, -128, -128, -18), torch.int8
    ),
    "trigamma at the end": lambda device: torch.polygamma(
        1, _tensor(torch.inf, 1e30, device=device)
    ),
    "copysign and a number": _beside_a_number(torch.copysign, torch.float32),
    "nextafter and a number": _beside_a_number(torch.nextafter, torch.float32),
    "gcd and a number": _beside_a_number(torch.gcd, torch.int64),
    "lcm and a number": _beside_a_number(torch.lcm, torch.int64),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_as_on_the_cpu(name: str) -> None:
    expected, found = PROGRAMS[name]("cpu"), PROGRAMS[name]("npu").cpu()
    assert found.dtype is expected.dtype
    assert torch.equal(found, expected)
    assert torch.equal(found.signbit(), expected.signbit())


def test_lgamma_between_its_poles_and_where_it_was_a_difference() -> None:
    """Off by 6e-6 between 3 and 7, and by as much below 0."""
    x = torch.linspace(-3.99, 8.0, 20_001)
    expected = torch.lgamma(x.double())
    found = torch.lgamma(x.to("npu")).cpu().double()
    assert torch.all((found - expected).abs() <= 1.5e-6 + 2e-7 * expected.abs())
