# SPDX-License-Identifier: Apache-2.0
"""What a sample is, and the tensors that it stands for. Knows no op."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from driver.errors import InputError

Tensor = torch.Tensor
Generator = torch.Generator

FLOATS = (torch.float32, torch.float16, torch.bfloat16)
INTS = (torch.int32, torch.int64, torch.int8, torch.uint8)
BOOL = (torch.bool,)
NUMBERS = (*FLOATS, *INTS)
EVERY = (*NUMBERS, *BOOL)


@dataclass(frozen=True)
class T:
    """A tensor argument."""

    shape: tuple[int, ...] | None = None
    """None: whatever shape is being tried; operands of one sample broadcast to each other."""
    values: str = "any"
    """A key of VALUES: which numbers it holds."""
    dtype: torch.dtype | None = None
    """None: the type that is being tried."""
    limit: int = 0
    """Of indices: they lie below it."""
    plain: bool = False
    """Always dense and never repeated: the op writes to it, or wants it so."""

    def __post_init__(self) -> None:
        """InputError for values that there are none of."""
        if self.values not in VALUES:
            raise InputError("T", "values", self.values, f"one of {', '.join(VALUES)}")


@dataclass(frozen=True)
class Sample:
    """One way to call an op. `dtypes`: the types that it is tried with."""

    op: str
    args: tuple[Any, ...]
    dtypes: tuple[torch.dtype, ...] = FLOATS
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    refused: tuple[torch.dtype, ...] = ()
    """Types that torch has and the NPU refuses: UnsupportedOp, and a test holds it to that."""
    special: bool = True
    """Infinities, NaN and subnormals make sense for it."""

    @property
    def free(self) -> bool:
        """Any shape will do."""
        return any(item.shape is None for item in self.tensors())

    def tensors(self) -> list[T]:
        """Its tensor arguments, those in lists included."""
        found: list[T] = []
        for value in (*self.args, *self.kwargs.values()):
            items = value if isinstance(value, list | tuple) else (value,)
            found += [item for item in items if isinstance(item, T)]
        return found


def _any(shape: tuple[int, ...], dtype: torch.dtype, generator: Generator, limit: int) -> Tensor:
    if dtype == torch.bool:
        return torch.randint(0, 2, shape, generator=generator).bool()
    if not dtype.is_floating_point:
        low = 0 if dtype == torch.uint8 else -9
        return torch.randint(low, 10, shape, generator=generator).to(dtype)
    return (torch.randn(shape, generator=generator) * 2).to(dtype)


def _positive(
    shape: tuple[int, ...], dtype: torch.dtype, generator: Generator, limit: int
) -> Tensor:
    if not dtype.is_floating_point:
        return torch.randint(1, 10, shape, generator=generator).to(dtype)
    return (torch.rand(shape, generator=generator) * 4 + 0.25).to(dtype)


def _chance(shape: tuple[int, ...], dtype: torch.dtype, generator: Generator, limit: int) -> Tensor:
    return torch.rand(shape, generator=generator).to(dtype)


def _far(shape: tuple[int, ...], dtype: torch.dtype, generator: Generator, limit: int) -> Tensor:
    """Integers of all sizes, equal ones among them."""
    near = torch.randint(-3, 4, shape, generator=generator).to(dtype)
    return near << torch.randint(0, 8 * dtype.itemsize - 3, shape, generator=generator)


def _all_set(
    shape: tuple[int, ...], dtype: torch.dtype, generator: Generator, limit: int
) -> Tensor:
    return torch.ones(shape, dtype=dtype)


def _none_set(
    shape: tuple[int, ...], dtype: torch.dtype, generator: Generator, limit: int
) -> Tensor:
    return torch.zeros(shape, dtype=dtype)


def _small(shape: tuple[int, ...], dtype: torch.dtype, generator: Generator, limit: int) -> Tensor:
    """Squares of the size of an eps."""
    return torch.randn(shape, generator=generator).mul(1e-3).to(dtype)


def _unit(shape: tuple[int, ...], dtype: torch.dtype, generator: Generator, limit: int) -> Tensor:
    return torch.rand(shape, generator=generator).to(dtype)


def _rising(shape: tuple[int, ...], dtype: torch.dtype, generator: Generator, limit: int) -> Tensor:
    return _any(shape, dtype, generator, limit).sort(-1).values


def _index(shape: tuple[int, ...], dtype: torch.dtype, generator: Generator, limit: int) -> Tensor:
    return torch.randint(0, limit, shape, generator=generator).to(dtype)


def _permutation(
    shape: tuple[int, ...], dtype: torch.dtype, generator: Generator, limit: int
) -> Tensor:
    rows = torch.rand((*shape[:-1], limit), generator=generator).argsort(-1)
    return rows[..., : shape[-1]].to(dtype)


def _ties(shape: tuple[int, ...], dtype: torch.dtype, generator: Generator, limit: int) -> Tensor:
    return torch.randint(0, 4, shape, generator=generator).to(dtype)


_WORDS = (
    *(0, 1, -1, (1 << 31) - 1, 1 << 31, -(1 << 31), (1 << 32) - 1, 1 << 32, (1 << 32) + 1),
    *(-(1 << 32), -(1 << 32) - 1, (5 << 32) + 7, (5 << 32) + 8, (5 << 32) + (1 << 31), 1 << 62),
    *((1 << 63) - 1, -(1 << 63), -(1 << 63) + 1),
)


def _words(shape: tuple[int, ...], dtype: torch.dtype, generator: Generator, limit: int) -> Tensor:
    """int64 of every length, and numbers around the ends of words."""
    numbers = torch.randint(-(1 << 63), (1 << 63) - 1, shape, generator=generator)
    numbers = numbers >> torch.randint(0, 63, shape, generator=generator)
    edges = torch.tensor(_WORDS)[torch.randint(0, len(_WORDS), shape, generator=generator)]
    chosen = torch.randint(0, 2, shape, generator=generator).bool()
    return torch.where(chosen, numbers, edges).to(dtype)


def _near_limits(
    shape: tuple[int, ...], dtype: torch.dtype, generator: Generator, limit: int
) -> Tensor:
    """Floats around ±2⁷, ±2⁸, ±2³¹, ±2³², ±2⁶³, a few units in the last place off."""
    power = torch.tensor([7.0, 8.0, 31.0, 32.0, 63.0])[
        torch.randint(0, 5, shape, generator=generator)
    ]
    sign = torch.randint(0, 2, shape, generator=generator) * 2.0 - 1.0
    off = torch.randint(-3, 3, shape, generator=generator) * torch.finfo(dtype).eps
    return (sign * 2.0**power * (1 + off)).to(dtype)


def _wide(shape: tuple[int, ...], dtype: torch.dtype, generator: Generator, limit: int) -> Tensor:
    """Floats of every size from 2⁻¹⁵ to 2¹⁵, and up to ±200, where exponentials overflow."""
    if not dtype.is_floating_point:
        return _any(shape, dtype, generator, limit)
    power, place = torch.rand((2, *shape), generator=generator)
    sign = torch.randint(0, 2, shape, generator=generator) * 2.0 - 1.0
    near_by = torch.randint(0, 2, shape, generator=generator).bool()
    return torch.where(near_by, place * 400 - 200, sign * torch.exp2(power * 30 - 15)).to(dtype)


def _wide_positive(
    shape: tuple[int, ...], dtype: torch.dtype, generator: Generator, limit: int
) -> Tensor:
    if not dtype.is_floating_point:
        return _positive(shape, dtype, generator, limit)
    return _wide(shape, dtype, generator, limit).abs()


Values = Callable[[tuple[int, ...], torch.dtype, Generator, int], Tensor]
VALUES: dict[str, Values] = {
    "any": _any,
    "positive": _positive,
    "unit": _unit,
    "index": _index,
    "permutation": _permutation,
    "ties": _ties,
    "words": _words,
    "near integer limits": _near_limits,
    "chance": _chance,
    "rising": _rising,
    "all set": _all_set,
    "none set": _none_set,
    "small": _small,
    "far": _far,
    "wide": _wide,
    "wide positive": _wide_positive,
}


def specials(shape: tuple[int, ...], dtype: torch.dtype, generator: Generator) -> Tensor:
    """Zeros, ones, halves, subnormals, the largest numbers, infinities and NaN of both signs; of
    fp32 also what lies halfway between two neighbours of bf16 and of fp16, and next to that."""
    info = torch.finfo(dtype)
    tame = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, info.eps, info.max, info.tiny, info.tiny / 4, 88.0, 710.0]
    if dtype == torch.float32:
        steps = [torch.finfo(short).eps for short in (torch.bfloat16, torch.float16)]
        halfway = [1 + odd * step / 2 for step in steps for odd in (1, 3)]
        tame += [middle + off for middle in halfway for off in (0, info.eps, -info.eps)]
    table = torch.tensor(
        [sign * x for x in (*tame, float("inf"), float("nan")) for sign in (1, -1)],
        dtype=torch.float64,
    ).to(dtype)
    return table[torch.randint(0, len(table), shape, generator=generator)]
