# SPDX-License-Identifier: Apache-2.0
"""Products of window descriptors for the tests, in the memory of a SmallDevice."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt
from cmodel_util import SmallDevice, random_bits

from driver.isa import (
    DTYPE_BYTES,
    DType,
    Opcode,
    Packet,
    WindowDescriptor,
    flag_word,
)

A, B, C, START = 0x2000, 0x5000, 0xA000, 0x8000
WINDOWS = {"SRC1_DESC": 0x1000, "SRC2_DESC": 0x1080, "DST_DESC": 0x1100}
START_WINDOW = 0x1180
Index = npt.NDArray[np.int64]
FACTORS = (1, 1, 2, 3)


def positions(window: WindowDescriptor) -> Index:
    """Offset in elements of each [batch, row, column]."""
    index = np.zeros((1,), np.int64)
    groups = []
    for part in (slice(0, 1), *window.groups):
        index = np.zeros((1,), np.int64)
        for size, stride in zip(window.sizes[part], window.strides[part], strict=True):
            index = (index[:, None] + np.arange(size) * stride).reshape(-1)
        groups.append(index)
    batch, rows, columns = groups
    return batch[:, None, None] + rows[:, None] + columns


def elements(device: SmallDevice, window: WindowDescriptor) -> npt.NDArray[np.unsignedinteger]:
    """The window's elements as [batch, rows, columns]."""
    dtype = DType(window.dtype)
    at = positions(window)
    return device.load(window.base, dtype, int(at.max()) + 1)[at]


def factored(rng: np.random.Generator) -> tuple[int, ...]:
    return tuple(int(size) for size in rng.choice(FACTORS, 3))


def refactored(rng: np.random.Generator, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Other factors of the same product, or one alone."""
    other = (1, 1, prod(sizes)) if rng.random() < 0.4 else tuple(rng.permutation(sizes).tolist())
    return tuple(int(size) for size in other)


def source_window(
    rng: np.random.Generator, base: int, dtype: DType, sizes: tuple[int, ...]
) -> WindowDescriptor:
    """Any strides: they overlap, repeat, and leave gaps."""
    return WindowDescriptor(base, dtype, sizes, tuple(int(s) for s in rng.integers(0, 9, 7)))


def result_window(
    rng: np.random.Generator, base: int, dtype: DType, sizes: tuple[int, ...]
) -> WindowDescriptor:
    """Dimensions in any order in memory, no element twice."""
    strides, step = [0] * 7, int(rng.integers(1, 3))
    for at in rng.permutation(7):
        strides[at] = step
        step *= sizes[at] + int(rng.random() < 0.15)
    return WindowDescriptor(base, dtype, sizes, tuple(strides))


@dataclass(frozen=True)
class WindowProduct:
    """A MATMUL of three windows."""

    a: WindowDescriptor
    b: WindowDescriptor
    c: WindowDescriptor
    accumulate: bool
    start: WindowDescriptor | None = None
    """Where the sums start, instead of C."""

    @property
    def packet(self) -> Packet:
        extra = ("ACCUMULATE",) if self.accumulate else ()
        extra += ("SRC3_DESC",) if self.start else ()
        flags = flag_word(DType(self.a.dtype), DType(self.c.dtype), *WINDOWS, *extra)
        m, n = (prod(self.c.sizes[part]) for part in self.c.groups)
        k = prod(self.a.sizes[self.a.groups[1]])
        third = START_WINDOW if self.start else 0
        sizes = (m, k, n, self.c.sizes[0], 0, 0, third, 0)
        return Packet(Opcode.MATMUL, flags, *WINDOWS.values(), sizes)

    def placed(self, seed: int) -> SmallDevice:
        device, rng = SmallDevice(), np.random.default_rng([seed, 9])
        windows = zip((self.a, self.b, self.c), WINDOWS.values(), strict=True)
        start = [(self.start, START_WINDOW)] if self.start else []
        for window, address in (*windows, *start):
            device.store(address, window.pack())
            count = 0x2000 // DTYPE_BYTES[DType(window.dtype)]
            device.store(window.base, random_bits(rng, DType(window.dtype), (count,), 0.02))
        return device


def random_product(seed: int, src: DType, dst: DType) -> WindowProduct:
    rng = np.random.default_rng(seed)
    batch, m, k, n = int(rng.integers(1, 4)), *(factored(rng) for _ in range(3))
    a = source_window(rng, A, src, (batch, *m, *k))
    b = source_window(rng, B, src, (batch, *refactored(rng, k), *n))
    c = result_window(rng, C, dst, (batch, *refactored(rng, m), *refactored(rng, n)))
    begins = ("", "C", "START")[seed % 3]
    sizes = (batch, *refactored(rng, m), *refactored(rng, n))
    start = source_window(rng, START, dst, sizes) if begins == "START" else None
    return WindowProduct(a, b, c, bool(begins), start)
