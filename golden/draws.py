# SPDX-License-Identifier: Apache-2.0
"""What random ops answer: the numbers of docs/numerics.md, where torch would draw its own.

torch's results give sizes and types only. Numbers that are no matter of rounding come out exact;
normal and exponential ones as float64 makes them, rounded once. Knows torch; no packets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from driver.errors import UnsupportedOp
from driver.isa import DType
from driver.random_stream import RandomStream
from driver.runtime.torch_types import NPU_TYPES
from golden import philox
from golden.formats import FLOAT_FORMATS, Floats
from golden.tensors import values_of

Tensor = torch.Tensor


@dataclass(frozen=True)
class Draw:
    """A random op: its arguments by their names, its stream, and torch's results for shapes."""

    arguments: Mapping[str, Any]
    stream: RandomStream
    like: tuple[Tensor, ...]

    def __getitem__(self, name: str) -> Any:
        return self.arguments[name]

    @property
    def dtype(self) -> DType:
        """Of the first result."""
        return NPU_TYPES[self.like[0].dtype]

    def words(self, count: int | None = None) -> philox.Words:
        """One word per element of the first result, or so many."""
        return philox.words(self.stream, self.like[0].numel() if count is None else count)

    def shaped(self, values: Any) -> tuple[Tensor]:
        """The first result with these values in row-major order, rounded once to its type."""
        like = self.like[0]
        made = torch.from_numpy(np.ascontiguousarray(values)).reshape(like.shape)
        return (torch.empty_like(like).copy_(_rounded(made, like.dtype)),)


Rule = Callable[[Draw], tuple[Tensor, ...]]


def _rounded(values: Tensor, dtype: torch.dtype) -> Tensor:
    """float64 to a 16-bit type by way of fp32, as the engine stores; integers as they are."""
    return values.float().to(dtype) if values.is_floating_point() else values.to(dtype)


def fp32(value: float) -> float:
    """The nearest fp32 number."""
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def below(value: float, dtype: DType) -> float:
    """The largest number of a type below an fp32 number."""
    form = FLOAT_FORMATS[dtype]
    if np.isinf(value):
        return form.max_finite if value > 0 else value
    if value == 0:
        return -(2.0**form.min_quantum)
    _, exponent = np.frexp(value)
    quantum = 2.0 ** max(int(exponent) - form.precision, form.min_quantum)
    floor = float(np.floor(value / quantum) * quantum)
    if floor < value:
        return floor
    # A power of two has finer numbers below it than above.
    if abs(np.frexp(value)[0]) == 0.5 and value > 0:
        quantum = max(quantum / 2, 2.0**form.min_quantum)
    return floor - quantum


def uniform_numbers(draw: Draw, low: float, high: float) -> tuple[Tensor, ...]:
    """uniform(low, high) for every element."""
    start, end = fp32(low), fp32(high)
    last = max(below(end, draw.dtype), start)
    unit = philox.unit(draw.words(), draw.dtype)
    return draw.shaped(np.minimum(philox.fma(unit, fp32(end - start), start), last))


def _uniform(draw: Draw) -> tuple[Tensor, ...]:
    return uniform_numbers(draw, draw["from"], draw["to"])


def _rand(draw: Draw) -> tuple[Tensor, ...]:
    return uniform_numbers(draw, 0.0, 1.0)


def true_normal(draw: Draw) -> tuple[Floats, Floats, Floats]:
    """(z, mean, std) of every element in float64; mean and std as fp32 holds them."""
    count = draw.like[0].numel()
    z = philox.normal(draw.words(count + count % 2))[:count]
    shape = tuple(draw.like[0].shape)
    mean, std = (
        np.broadcast_to(_parameter(draw.arguments.get(name, default)), shape).reshape(-1)
        for name, default in (("mean", 0.0), ("std", 1.0))
    )
    return z, mean, std


def _parameter(value: Tensor | float) -> Floats:
    if isinstance(value, Tensor):
        return values_of(value)
    return np.asarray(fp32(value))


def _normal(draw: Draw) -> tuple[Tensor, ...]:
    z, mean, std = true_normal(draw)
    return draw.shaped(z * std + mean)


def bernoulli_numbers(draw: Draw, chance: Floats, output: int = 0) -> Tensor:
    """bernoulli(chance) for every element of an output."""
    like = draw.like[output]
    hits = philox.unit(draw.words(like.numel())).reshape(tuple(like.shape)) < chance
    return torch.empty_like(like).copy_(torch.from_numpy(np.asarray(hits)).reshape(like.shape))


def _bernoulli(draw: Draw) -> tuple[Tensor, ...]:
    chance = draw["p"] if "p" in draw.arguments else draw["self"]
    return (bernoulli_numbers(draw, _parameter(chance)),)


def _integers(draw: Draw, low: int, end: int) -> tuple[Tensor, ...]:
    if not 0 < end - low < 1 << 32:
        raise UnsupportedOp("random integers", "range", (low, end), "fewer than 2³² integers")
    return draw.shaped(philox.integers(draw.words(), low, end - low))


def _randint(draw: Draw) -> tuple[Tensor, ...]:
    return _integers(draw, draw.arguments.get("low", 0), draw["high"])


WHOLE = {
    DType.FP32: 1 << 24,
    DType.FP16: 1 << 11,
    DType.BF16: 1 << 8,
    DType.INT8: 1 << 7,
    DType.UINT8: 1 << 8,
    DType.INT32: 1 << 31,
}
"""Without limits, integers from 0: all that a type holds (floats: with all smaller ones)."""


def _random(draw: Draw) -> tuple[Tensor, ...]:
    low, end = draw.arguments.get("from", 0), draw.arguments.get("to")
    if end is not None:
        return _integers(draw, low, end)
    if "from" in draw.arguments:
        raise UnsupportedOp("aten.random_.from", "to", end, "an integer")
    if draw.like[0].dtype == torch.bool:
        return _integers(draw, 0, 2)
    if draw.dtype is not DType.INT64:
        return _integers(draw, 0, WHOLE[draw.dtype])
    pairs = draw.words(2 * draw.like[0].numel())
    high = (pairs[1::2] >> np.uint64(1)) << np.uint64(32)
    return draw.shaped((pairs[0::2] | high).astype(np.int64))


def _exponential(draw: Draw) -> tuple[Tensor, ...]:
    return draw.shaped(true_exponential(draw.words(), draw["lambd"]))


def true_exponential(words: philox.Words, rate: float = 1.0) -> Floats:
    """Exponential numbers in float64."""
    return np.asarray(-np.log(philox.open_unit(words)) / fp32(rate))


def _randperm(draw: Draw) -> tuple[Tensor, ...]:
    return draw.shaped(np.argsort(draw.words(), kind="stable"))


def _dropout(draw: Draw) -> tuple[Tensor, ...]:
    x, p = draw["input"], draw["p"]
    if draw["train"] is False:
        return x.clone(), torch.ones_like(draw.like[1])
    mask = bernoulli_numbers(draw, np.asarray(fp32(1 - p)), output=1)
    return x.mul(mask).mul_(0.0 if p == 1 else 1 / (1 - p)), mask


def race(draw: Draw) -> Floats:
    """weight ÷ exponential(1) per category: [rows, draws, categories], one draw if none repeats."""
    weights = values_of(draw["self"]).reshape(-1, draw["self"].shape[-1])
    draws = draw["num_samples"] if draw["replacement"] else 1
    shape = (weights.shape[0], draws, weights.shape[1])
    noise = true_exponential(draw.words(int(np.prod(shape)))).reshape(shape)
    return np.asarray(weights[:, None, :] / noise)


def _multinomial(draw: Draw) -> tuple[Tensor, ...]:
    order = np.argsort(-race(draw), axis=-1, kind="stable")
    taken = order[..., 0] if draw["replacement"] else order[:, 0, : draw["num_samples"]]
    return draw.shaped(taken.astype(np.int64))


DRAWS: dict[str, Rule] = {
    "bernoulli": _bernoulli,
    **dict.fromkeys(("rand", "rand_like"), _rand),
    "uniform": _uniform,
    **dict.fromkeys(("normal", "normal_functional", "randn", "randn_like"), _normal),
    **dict.fromkeys(("randint", "randint_like"), _randint),
    "random": _random,
    "exponential": _exponential,
    "randperm": _randperm,
    "native_dropout": _dropout,
    "multinomial": _multinomial,
}
"""Op, without overload, to its answer."""
