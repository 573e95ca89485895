# SPDX-License-Identifier: Apache-2.0
"""Small random models: a few inputs, and ops that each take earlier values.

Every choice is asked of the caller as "a number below n", so that Hypothesis can choose, and
shrink, as well as a seeded generator can. Knows torch only.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

Tensor = torch.Tensor
Choose = Callable[[int], int]
"""A number of 0 to n − 1."""
GraphStep = Callable[[list[Tensor]], Tensor]
Maker = Callable[[Choose, list[Tensor]], GraphStep]
"""Choices, and the values so far → a step on them."""

MAX_ELEMENTS = 2048
_SIZES = (1, 2, 3, 5, 7, 17)
_MAX_RANK = 3
_DTYPES = (torch.float32, torch.bfloat16, torch.float16)

_UNARY: tuple[Callable[[Tensor], Tensor], ...] = (
    torch.neg,
    torch.abs,
    torch.relu,
    torch.tanh,
    torch.sigmoid,
    torch.exp,
    torch.cos,
    torch.reciprocal,
    torch.nn.functional.silu,
    lambda x: x.abs().sqrt(),
    lambda x: x.clone().mul_(0.5),
    lambda x: x.clamp(-1.0, 1.5),
)
_BINARY: tuple[Callable[[Tensor, Tensor], Tensor], ...] = (
    torch.add,
    torch.sub,
    torch.mul,
    torch.maximum,
    torch.div,
    lambda x, y: torch.where(x > y, x, y),
    lambda x, y: x.clone().add_(y),
)
_BY_DIMENSION: tuple[Callable[[Tensor, int], Tensor], ...] = (
    lambda x, dim: x.sum(dim, keepdim=True),
    lambda x, dim: x.mean(dim),
    lambda x, dim: x.amax(dim, keepdim=True),
    torch.softmax,
    lambda x, dim: x.cumsum(dim),
    lambda x, dim: torch.cat([x, x], dim),
    lambda x, dim: x.narrow(dim, 0, (x.shape[dim] + 1) // 2),
    lambda x, dim: x.transpose(dim, -1),
    lambda x, dim: x.index_select(dim, torch.arange(x.shape[dim] - 1, -1, -1)),
)
_SHAPES: tuple[Callable[[Tensor], Tensor], ...] = (
    lambda x: x.reshape(-1),
    lambda x: x.unsqueeze(0),
    lambda x: x[..., ::2],
    lambda x: x.contiguous(),
)


class Graph(torch.nn.Module):
    """Runs its steps in order; the result is the last value, and the last but one."""

    def __init__(self, steps: list[GraphStep]) -> None:
        super().__init__()
        self._steps = steps

    def forward(self, *inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Two results of `inputs`."""
        values = list(inputs)
        for step in self._steps:
            values.append(step(values))
        return values[-1], values[-2]


def random_graph(choose: Choose, length: int) -> tuple[Graph, tuple[Tensor, ...]]:
    """A model of so many steps and its inputs."""
    generator = torch.Generator().manual_seed(choose(1 << 16))
    inputs = tuple(_input(choose, generator) for _ in range(1 + choose(2)))
    values: list[Tensor] = list(inputs)
    steps: list[GraphStep] = []
    for _ in range(length):
        step = _MAKERS[choose(len(_MAKERS))](choose, values)
        made = step(values)
        if made.numel() > MAX_ELEMENTS or made.dim() > _MAX_RANK + 1:
            continue
        steps.append(step)
        values.append(made)
    if not steps:
        steps.append(lambda values: values[0] + 1)
    return Graph(steps), inputs


def _input(choose: Choose, generator: torch.Generator) -> Tensor:
    shape = [_SIZES[choose(len(_SIZES))] for _ in range(1 + choose(_MAX_RANK))]
    return torch.randn(shape, generator=generator).to(_DTYPES[choose(len(_DTYPES))])


def _one(choose: Choose, values: list[Tensor]) -> int:
    """Which value: rather a late one."""
    return max(choose(len(values)), choose(len(values)))


def _unary(choose: Choose, values: list[Tensor]) -> GraphStep:
    at, function = _one(choose, values), _UNARY[choose(len(_UNARY))]
    return lambda values: function(values[at])


def _shaped(choose: Choose, values: list[Tensor]) -> GraphStep:
    at, function = _one(choose, values), _SHAPES[choose(len(_SHAPES))]
    return lambda values: function(values[at].reshape(1) if not values[at].dim() else values[at])


def _along(choose: Choose, values: list[Tensor]) -> GraphStep:
    at, function = _one(choose, values), _BY_DIMENSION[choose(len(_BY_DIMENSION))]
    rank = values[at].dim()
    if not rank:
        return lambda values: values[at] * 2
    dim = choose(rank)
    return lambda values: function(values[at], dim)


def _binary(choose: Choose, values: list[Tensor]) -> GraphStep:
    """With any earlier value that broadcasts, else with itself."""
    at, function = _one(choose, values), _BINARY[choose(len(_BINARY))]
    mates = [i for i, other in enumerate(values) if _broadcasts(other, values[at])]
    mate = mates[choose(len(mates))]
    return lambda values: function(values[at], values[mate].to(values[at].dtype))


def _broadcasts(other: Tensor, to: Tensor) -> bool:
    try:
        return bool(torch.broadcast_shapes(other.shape, to.shape) == to.shape)
    except RuntimeError:
        return False


def _product(choose: Choose, values: list[Tensor]) -> GraphStep:
    at = _one(choose, values)
    if values[at].dim() < 2:
        return lambda values: values[at] + values[at]
    return lambda values: values[at] @ values[at].mT


def _cast(choose: Choose, values: list[Tensor]) -> GraphStep:
    at, dtype = _one(choose, values), _DTYPES[choose(len(_DTYPES))]
    return lambda values: values[at].to(dtype, copy=True)


_MAKERS: tuple[Maker, ...] = (_unary, _binary, _along, _shaped, _product, _cast)
