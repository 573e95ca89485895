# SPDX-License-Identifier: Apache-2.0
"""From samples to calls: every type, layout, size and kind of values that an op is tried with.

Operands depend on the seed, the op and the variant's name only, so a call is the same alone and in
the suite.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from tb.ops.samples.model import VALUES, Generator, Sample, T, Tensor, specials

SHAPES: dict[str, tuple[int, ...]] = {
    "dense": (3, 21),
    "one element": (1,),
    "15": (15,),
    "16": (16,),
    "17": (17,),
    "rows of 33": (2, 33),
    "scalar": (),
    "empty": (0, 5),
}
"""Of samples that take any shape, in memory order."""
_LAYOUT_SHAPE = (2, 3, 18)
_SPECIAL_SHAPE = (28, 28)


@dataclass(frozen=True)
class SampleCall:
    """One call of an op."""

    name: str
    sample: Sample
    dtype: torch.dtype
    number: int
    """Of the sample among its op's."""

    def arguments(self, seed: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Fresh arguments; equal seeds give equal bits."""
        key = f"{self.sample.op} {self.number} {self.dtype} {self.name}"
        generator = torch.Generator().manual_seed(seed * 1_000_003 + zlib.crc32(key.encode()))
        maker = _Maker(self, generator)
        args = tuple(maker.value(arg) for arg in self.sample.args)
        return args, {name: maker.value(arg) for name, arg in self.sample.kwargs.items()}

    def __str__(self) -> str:
        return f"{self.sample.op} #{self.number}, {self.dtype}, {self.name}"


def variants(samples: tuple[Sample, ...]) -> Iterator[SampleCall]:
    """All calls of one op."""
    for number, sample in enumerate(samples):
        for dtype in sample.dtypes:
            for name in _names(sample, dtype):
                yield SampleCall(name, sample, dtype, number)


def _names(sample: Sample, dtype: torch.dtype) -> Iterator[str]:
    tensors = sample.tensors()
    if sample.free:
        yield from SHAPES
    else:
        yield "dense"
    if any(not t.plain and t.shape != () for t in tensors):
        yield "strided"
        yield "broadcast"
    if sample.special and dtype.is_floating_point and any(t.dtype is None for t in tensors):
        yield "special"


class _Maker:
    """Makes the tensors of one variant, one after the other."""

    def __init__(self, variant: SampleCall, generator: Generator) -> None:
        self._variant, self._generator = variant, generator
        self._made = 0

    def value(self, value: Any) -> Any:
        """An argument with its tensors made."""
        if isinstance(value, T):
            return self._tensor(value)
        if isinstance(value, list):
            return [self.value(item) for item in value]
        return value

    def _tensor(self, t: T) -> Tensor:
        name, position = self._variant.name, self._made
        self._made += 1
        dtype = t.dtype or self._variant.dtype
        shape = self._shape(t)
        if t.plain or name not in _LAYOUTS:
            return self._values(t, shape, dtype)
        return _LAYOUTS[name](lambda s: self._values(t, s, dtype), shape, position)

    def _shape(self, t: T) -> tuple[int, ...]:
        if t.shape is not None:
            return t.shape
        if self._variant.name == "special":
            return _SPECIAL_SHAPE
        return SHAPES.get(self._variant.name, _LAYOUT_SHAPE)

    def _values(self, t: T, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        if self._variant.name == "special" and t.dtype is None:
            return specials(shape, dtype, self._generator)
        return VALUES[t.values](shape, dtype, self._generator, t.limit)


_Fill = Callable[[tuple[int, ...]], Tensor]


def _strided(fill: _Fill, shape: tuple[int, ...], position: int) -> Tensor:
    """Dimensions in reverse order in memory; every second element, from an offset. By turns."""
    if position % 2 or len(shape) < 2:
        big = fill(tuple(2 * size + 1 for size in shape))
        return big[tuple(slice(1, None, 2) for _ in shape)]
    return fill(tuple(reversed(shape))).permute(*reversed(range(len(shape))))


def _broadcast(fill: _Fill, shape: tuple[int, ...], position: int) -> Tensor:
    """One dimension repeated: the first of the first tensor, the second of the second, …"""
    if not shape:
        return fill(shape)
    at = position % len(shape)
    return fill((*shape[:at], 1, *shape[at + 1 :])).expand(shape)


_LAYOUTS: dict[str, Callable[[_Fill, tuple[int, ...], int], Tensor]] = {
    "strided": _strided,
    "broadcast": _broadcast,
}
