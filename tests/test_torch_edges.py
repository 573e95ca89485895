# SPDX-License-Identifier: Apache-2.0
"""Ordinary arguments at their edge: nothing, 0, two rows, a border beside whole tiles, an axis
twice. Each is a way through a lowering that no other call takes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

Program = Callable[[str], Tensor]
FLOATS = {"beyond 2^-126": (2.0**-140, 1e-40), "the smallest power": (2.0**-126, 1e-38)}


def counted(device: str, *sizes: int) -> Tensor:
    """Elements that all differ, in memory that held others before."""
    torch.full((4096,), 7.0, device=device)
    return (torch.arange(float(math.prod(sizes))).reshape(sizes) / 8 - 1).to(device)


def convolved(device: str, rows: int, columns: int) -> Tensor:
    image, kernel = counted(device, 2, 2, rows, columns), counted(device, 3, 2, 2, 3)
    return functional.conv2d(image, kernel, padding=(1, 2))


def gradient(x: Tensor, function: Callable[..., Tensor], *args: Any, **kwargs: Any) -> Tensor:
    """Of the sum of squares of the function's values."""
    x = x.requires_grad_()
    function(x, *args, **kwargs).square().sum().backward()
    assert x.grad is not None
    return x.grad


def embedded(device: str, padding: int) -> Tensor:
    rows = torch.tensor([0, 1, 0, 2, 3], device=device)
    return gradient(counted(device, 4, 3), lambda table: functional.embedding(rows, table, padding))


def adam(device: str, betas: tuple[float, float]) -> Tensor:
    x = torch.ones(3, device=device, requires_grad=True)
    optimizer = torch.optim.Adam([x], 0.1, betas, fused=True)
    for _ in range(2):
        x.grad = counted(device, 3)
        optimizer.step()
    return x.detach()


def grown(device: str, scale: float) -> Tensor:
    count = torch.tensor(0, dtype=torch.int32, device=device)
    x, found = torch.tensor(scale, device=device), torch.tensor(0.0, device=device)
    return torch._amp_update_scale_(x, count, found, 2.0, 0.5, 1)


def lowest(device: str, dtype: torch.dtype) -> Tensor:
    x = torch.full((1, 1, 4, 4), torch.iinfo(dtype).min, dtype=dtype, device=device)
    values, places = functional.max_pool2d(x, 3, 2, 1, return_indices=True)
    return torch.stack([values.long(), places])


def integer_addmm(device: str, beta: int) -> Tensor:
    added = torch.ones(2, 2, dtype=torch.int32, device=device)
    left, right = (added.new_empty(sizes) for sizes in ((2, 0), (0, 2)))
    return torch.addmm(added, left, right, beta=beta)


def normalised(device: str, rows: int) -> Tensor:
    """A batch norm's results and running statistics, those of one row without a variance."""
    mean, variance = torch.zeros(3, device=device), torch.ones(3, device=device)
    weight, bias = counted(device, 3), counted(device, 3)
    found = torch.native_batch_norm(
        counted(device, rows, 3), weight, bias, mean, variance, True, 0.1, 1e-5
    )
    return torch.cat([x.cpu().flatten() for x in (*found, mean, variance)])


PROGRAMS: dict[str, Program] = {
    **{f"a batch of {n}": lambda d, n=n: normalised(d, n) for n in (1, 2)},
    **{f"an image of {n} rows": lambda d, n=n: convolved(d, n, 5) for n in (1, 2, 3)},
    **{f"an image of {n} columns": lambda d, n=n: convolved(d, 5, n) for n in (1, 2)},
    **{f"padding row {n}": lambda d, n=n: embedded(d, n) for n in (0, 3, -1)},
    "tiles with a border": lambda d: gradient(
        counted(d, 1, 1, 6, 6), functional.avg_pool2d, 3, 3, 1
    ),
    "tiles with a border, not counted": lambda d: gradient(
        counted(d, 1, 1, 6, 6), functional.avg_pool2d, 3, 3, 1, count_include_pad=False
    ),
    "tiles with a divisor": lambda d: gradient(
        counted(d, 1, 1, 4, 4), functional.avg_pool2d, 2, divisor_override=3
    ),
    **{
        f"the lowest {dtype} of all": lambda d, dtype=dtype: lowest(d, dtype)
        for dtype in (torch.int8, torch.int32, torch.uint8)
    },
    "an axis rolled twice": lambda d: counted(d, 7).roll((1, 2), (0, 0)),
    "an axis rolled there and back": lambda d: counted(d, 2, 7).roll((3, -3), (1, -1)),
    "in nothing": lambda d: torch.isin(counted(d, 3), counted(d, 0)),
    "not in nothing": lambda d: torch.isin(counted(d, 3), counted(d, 0), invert=True),
    "all of nothing": lambda d: counted(d, 2, 0).all(1),
    "any of nothing": lambda d: counted(d, 2, 0).any(1),
    **{
        f"a {name} with {n} more taken off than there are": lambda d, f=f, n=n: f(
            counted(d, 2, 3), 1, correction=3 + n
        )
        for name, f in (("variance", torch.var), ("deviation", torch.std))
        for n in (-1, 0, 2)
    },
    **{
        f"{n} times what is added to no product": lambda d, n=n: integer_addmm(d, n) for n in (0, 2)
    },
    **{f"a scale of {x:g}": lambda d, x=x: grown(d, x) for x in (1.0, 1.5e38, 2e38)},
    **{f"adam with {b}": lambda d, b=b: adam(d, b) for b in ((0.0, 0.9), (0.9, 0.0), (0.0, 0.0))},
    **{
        f"over {name}": lambda d, x=x, y=y: torch.tensor([0.0, y, -y], device=d) / x
        for name, (x, y) in FLOATS.items()
    },
    "the sign of a product with 0": lambda d: (
        1 / torch.add(torch.tensor([-0.0, 0.0], device=d), 0, alpha=-1)
    ),
}


@pytest.mark.filterwarnings("ignore:.*degrees of freedom is <= 0")
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_what_it_gives_on_the_cpu(name: str) -> None:
    found, expected = PROGRAMS[name]("npu"), PROGRAMS[name]("cpu")
    torch.testing.assert_close(found.cpu(), expected, rtol=1e-5, atol=1e-6, equal_nan=True)


def test_a_quotient_has_the_default_type_of_its_moment() -> None:
    x = torch.arange(1, 5, device="npu")
    default = torch.get_default_dtype()
    try:
        for dtype in (torch.float32, torch.float16, torch.float32):
            torch.set_default_dtype(dtype)
            assert (x // 1.5).dtype == dtype
    finally:
        torch.set_default_dtype(default)


def test_a_repeated_call_waits_for_what_writes_to_its_operands() -> None:
    """Long, so that the first call still runs when the next one is given."""
    n = 20_000
    start = torch.linspace(-1, 1, 3 * n)

    def program(memory: Tensor) -> Tensor:
        for _ in range(3):
            torch.softmax(memory[:n], 0, out=memory[2 * n :])
        return torch.softmax(memory[:n], 0, out=memory[8 : n + 8])

    found = program(start.to("npu")).cpu()
    torch.testing.assert_close(found, torch.softmax(start[:n], 0), rtol=1e-4, atol=1e-9)
