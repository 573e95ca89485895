# SPDX-License-Identifier: Apache-2.0
"""Indices of a device program: each counts in its own dimension, and one outside is an error."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.nn import functional

from driver.errors import DeviceFault

Program = Callable[[torch.Tensor, Callable[[list[int]], torch.Tensor]], torch.Tensor]
_FAR = 1 << 32


def _put(
    x: torch.Tensor, places: tuple[torch.Tensor, ...], *, accumulate: bool = False
) -> torch.Tensor:
    return x.clone().index_put_(places, torch.full((), 99.0, device=x.device), accumulate)


def _reduced(x: torch.Tensor, index: torch.Tensor, how: str, **options: bool) -> torch.Tensor:
    line = x.reshape(-1)
    return line.scatter_reduce(0, index, torch.ones_like(line)[: len(index)] * 5, how, **options)


OUTSIDE: dict[str, Program] = {
    "behind the last column": lambda x, at: x[at([0]), at([7])],
    "behind the last row": lambda x, at: x[at([3]), at([0])],
    "before the first column": lambda x, at: x[at([1]), at([-5])],
    "before the first row": lambda x, at: x[at([-4]), at([3])],
    "in one of several": lambda x, at: x[at([0, 1, 2]), at([3, 4, 0])],
    "the last of three": lambda x, at: x.reshape(3, 2, 2)[at([0]), at([1]), at([2])],
    "the first of three": lambda x, at: x.reshape(3, 2, 2)[at([-4]), at([1]), at([1])],
    "of a row that broadcasts": lambda x, at: x[at([0, 1]).reshape(2, 1), at([0, 4])],
    "of a tensor in columns": lambda x, at: x.t()[at([4]), at([0])],
    "far away, alone": lambda x, at: x[at([_FAR])],
    "far away, a row": lambda x, at: x[at([_FAR]), at([1])],
    "far away, a column": lambda x, at: x[at([1]), at([_FAR + 2])],
    "far below": lambda x, at: x[at([1]), at([-_FAR])],
    "written": lambda x, at: _put(x, (at([0]), at([7]))),
    "written below": lambda x, at: _put(x, (at([1]), at([-5]))),
    "added to": lambda x, at: _put(x, (at([0, 0]), at([1, 4])), accumulate=True),
    "written far away": lambda x, at: _put(x, (at([_FAR]),)),
    "the largest at it": lambda x, at: _reduced(x, at([12]), "amax"),
    "the smallest at it": lambda x, at: _reduced(x, at([-1]), "amin"),
    "the largest of it": lambda x, at: _reduced(x, at([12]), "amax", include_self=False),
    "the product at it": lambda x, at: _reduced(x, at([12]), "prod"),
    "the product below": lambda x, at: _reduced(x, at([-1]), "prod"),
    "the largest far away": lambda x, at: _reduced(x, at([_FAR]), "amax"),
    "a class that is none": lambda x, at: functional.cross_entropy(x, at([0, _FAR, 1])),
    "a class below": lambda x, at: functional.cross_entropy(x, at([0, -_FAR, 1])),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_an_index_outside_its_dimension_is_an_error(name: str) -> None:
    program = OUTSIDE[name]
    x = torch.arange(12.0).reshape(3, 4)
    with pytest.raises((IndexError, RuntimeError), match=r"out of (bounds|range)"):
        program(x, torch.tensor)
    with pytest.raises(DeviceFault, match="BAD_INDEX"):
        program(x.to("npu"), lambda at: torch.tensor(at).to("npu")).cpu()
    assert torch.ones(3, device="npu").sum().item() == 3


INSIDE: dict[str, Program] = {
    "from the end": lambda x, at: x[at([-1, 0, -3]), at([-4, 3, -1])],
    "three": lambda x, at: x.reshape(3, 2, 2)[at([-1, 2]), at([1, -2]), at([-1, 0])],
    "broadcast": lambda x, at: x[at([0, -1]).reshape(2, 1), at([0, -2, 3])],
    "in columns": lambda x, at: x.t()[at([3, -1]), at([0, -3])],
    "behind a slice": lambda x, at: x.reshape(3, 2, 2)[:, at([1, 0]), at([-1, 1])],
    "int32": lambda x, at: x[at([-1]).int(), at([2]).int()],
    "added to": lambda x, at: _put(x, (at([0, -3]), at([1, -3])), accumulate=True),
    "the largest": lambda x, at: _reduced(x, at([3, 3, 11]), "amax"),
    "the smallest of it": lambda x, at: _reduced(x, at([3, 0, 11]), "amin", include_self=False),
    "the product": lambda x, at: _reduced(x, at([3, 3, 11]), "prod"),
    "a class that is ignored": lambda x, at: functional.cross_entropy(x, at([0, -100, 3])),
}


@pytest.mark.parametrize("name", INSIDE)
def test_an_index_inside_reads_and_writes_its_own_element(name: str) -> None:
    program = INSIDE[name]
    x = torch.arange(12.0).reshape(3, 4)
    found = program(x.to("npu"), lambda at: torch.tensor(at).to("npu")).cpu()
    torch.testing.assert_close(found, program(x, torch.tensor), rtol=1e-6, atol=1e-6)


CUBE = torch.arange(60.0).reshape(3, 4, 5)
ROWS, COLUMNS, MASK = torch.tensor([2, 0]), torch.tensor([1, 3]), torch.tensor([True, False, True])


def _stored(x: torch.Tensor, index: object, value: torch.Tensor | float) -> torch.Tensor:
    x = x.clone()
    x[index] = value  # type: ignore[index]
    return x


def _gradient(x: torch.Tensor, index: object) -> torch.Tensor:
    x = x.clone().requires_grad_()
    (x[index] ** 2).sum().backward()  # type: ignore[index]
    assert x.grad is not None
    return x.grad


To = Callable[[torch.Tensor], torch.Tensor]
PLACES: dict[str, Callable[[torch.Tensor, To], torch.Tensor]] = {
    "apart": lambda x, to: x[to(ROWS), :, to(COLUMNS)],
    "apart, of two dimensions": lambda x, to: x[to(ROWS)[:, None], :, to(COLUMNS)],
    "apart, a mask": lambda x, to: x[to(MASK), :, to(COLUMNS)],
    "apart, of float64": lambda x, to: x.double()[to(ROWS), :, to(COLUMNS)],
    "apart, stored": lambda x, to: _stored(x, (to(ROWS), slice(None), to(COLUMNS)), x[0, :2, :4]),
    "apart, backward": lambda x, to: _gradient(x, (to(ROWS), slice(None), to(COLUMNS))),
    "on the CPU": lambda x, to: x[ROWS],
    "a mask on the CPU": lambda x, to: x[CUBE > 30],
    "stored at a CPU mask": lambda x, to: _stored(x, MASK, 3.0),
    "stored at CPU places": lambda x, to: _stored(x, (ROWS, COLUMNS), x[0, :2]),
    "filled from the end": lambda x, to: x.index_fill(1, to(torch.tensor([-1, 0])), 7.0),
}


@pytest.mark.parametrize("name", PLACES)
def test_places_apart_and_on_the_cpu(name: str) -> None:
    found = PLACES[name](CUBE.to("npu"), lambda x: x.to("npu")).cpu()
    assert torch.equal(found, PLACES[name](CUBE, lambda x: x))


def test_the_default_type_decides_what_is_remembered_of_a_result() -> None:
    x = torch.ones(3, dtype=torch.int32)
    try:
        for dtype in (torch.float32, torch.float16, torch.float32):
            torch.set_default_dtype(dtype)
            assert (x.to("npu") // 1.5).dtype is (x // 1.5).dtype is dtype
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int32])
@pytest.mark.parametrize("divisor", [200, -2, 2**16 + 3, 2**32 + 5])
def test_a_divisor_that_the_type_does_not_hold_counts_modulo_its_range(
    dtype: torch.dtype, divisor: int
) -> None:
    x = torch.tensor([100, 7, 1, 0, 99], dtype=dtype)
    for made in (
        lambda x: x % divisor,
        lambda x: torch.fmod(x, divisor),
        lambda x: x // divisor,
        lambda x: torch.div(x, divisor, rounding_mode="trunc"),
        lambda x: x % torch.tensor(divisor),
        lambda x: torch.fmod(torch.tensor(divisor), x.clamp(min=1)),
    ):
        assert torch.equal(made(x.to("npu")).cpu(), made(x))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_gradient_that_is_summed_from_many_does_not_stop_growing(dtype: torch.dtype) -> None:
    def gradient(device: str) -> torch.Tensor:
        x = torch.zeros(2, 1, device=device, dtype=dtype, requires_grad=True)
        index = torch.zeros(3000, 1, dtype=torch.int64, device=device)
        x.gather(0, index).sum().backward()
        assert x.grad is not None
        return x.grad.cpu()

    assert torch.equal(gradient("npu"), gradient("cpu"))
