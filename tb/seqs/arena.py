# SPDX-License-Identifier: Apache-2.0
"""Where the operands of random packets lie, and their contents."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from math import prod

from driver.isa import DESCRIPTOR_BYTES, DTYPE_BYTES, Descriptor, DType
from driver.isa.micro import VectorProgram

_GAP_BYTES = 256


@dataclass
class Arena:
    """Hands out fresh addresses upwards, each aligned to the element only; collects contents."""

    rng: random.Random
    base: int
    limit: int
    contents: list[tuple[int, bytes]] = field(default_factory=list)
    loaded: dict[int, VectorProgram] = field(default_factory=dict)
    """Programs that packets so far have loaded, by their first lines."""

    def place(self, size_bytes: int, alignment: int) -> int:
        """Somewhere within the next few hundred bytes."""
        start = self.base + self.rng.randrange(_GAP_BYTES)
        address = -(-start // alignment) * alignment
        self.base = address + size_bytes
        assert self.base <= self.limit, "arena is full"
        return address

    def operand(self, size_bytes: int, alignment: int, *, source: bool = False) -> int:
        """Where the data of an operand lie; `source`: they are only read."""
        return self.place(size_bytes, alignment)

    def fill(self, address: int, size_bytes: int, dtype: DType = DType.INT8) -> None:
        """Random bytes there before the packet runs; INT32 close to where it wraps."""
        data = self.rng.randbytes(size_bytes)
        if dtype is DType.INT32:
            data = b"".join(self._near_wrap() for _ in range(size_bytes // 4))
        self.contents.append((address, data))

    def _near_wrap(self) -> bytes:
        return ((1 << 31) + self.rng.randint(-30_000, 30_000)).to_bytes(4, "little")

    def taken(self) -> list[tuple[int, bytes]]:
        """The contents that were added since the last call."""
        contents, self.contents = self.contents, []
        return contents


@dataclass(frozen=True)
class ArenaOperand:
    """Where an operand is, or its descriptor."""

    address: int
    descriptor: bool


def strides(rng: random.Random, sizes: tuple[int, ...], broadcast: bool) -> tuple[int, ...]:
    """A random order of dimensions in memory with random gaps; maybe one dimension repeated."""
    order = rng.sample(range(len(sizes)), len(sizes))
    strides = [0] * len(sizes)
    step = 1 if rng.random() < 0.7 else rng.randint(2, 3)
    for at in order:
        strides[at] = step
        step = step * sizes[at] + (rng.randint(0, 3) if rng.random() < 0.3 else 0)
    if broadcast and rng.random() < 0.2:
        strides[rng.randrange(len(sizes))] = 0
    return tuple(strides)


def place_operand(
    arena: Arena, sizes: tuple[int, ...], dtype: DType, *, source: bool
) -> ArenaOperand:
    """Random data, dense or behind a descriptor; a source may repeat along a dimension."""
    rng, width = arena.rng, DTYPE_BYTES[dtype]
    if rng.random() < 0.5:
        size_bytes = prod(sizes) * width
        address = arena.operand(size_bytes, width, source=source)
        arena.fill(address, size_bytes, dtype)
        return ArenaOperand(address, False)
    steps = strides(rng, sizes, broadcast=source)
    return ArenaOperand(place_view(arena, dtype, sizes, steps, source=source), True)


def place_view(
    arena: Arena,
    dtype: DType,
    sizes: tuple[int, ...],
    strides: tuple[int, ...],
    *,
    source: bool = False,
) -> int:
    """Random data and the descriptor of it: the descriptor's address. `source`: as for operand."""
    width = DTYPE_BYTES[dtype]
    span = sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True)) + 1
    base = arena.operand(span * width, width, source=source)
    arena.fill(base, span * width, dtype)
    at = arena.place(DESCRIPTOR_BYTES, DESCRIPTOR_BYTES)
    arena.contents.append((at, Descriptor(base, dtype, sizes, strides).pack()))
    return at
