# SPDX-License-Identifier: Apache-2.0
"""Random strided tensors in device memory, and ops lowered and run on them."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from driver.isa import DTYPE_BYTES, DType, Packet
from driver.lower import lower
from driver.runtime import Device, TensorView

Values = NDArray[np.float64]
STORAGE = {
    DType.FP32: np.float32,
    DType.FP16: np.float16,
    DType.BF16: np.uint16,
    DType.INT8: np.int8,
    DType.INT32: np.int32,
}
"""numpy's type for the elements; bf16 as its bits."""


def encode(values: Values, dtype: DType) -> NDArray[np.generic]:
    """Elements of `dtype`, which must hold the values exactly."""
    if dtype is not DType.BF16:
        return values.astype(STORAGE[dtype])
    bits = values.astype(np.float32).view(np.uint32)
    assert not (bits & 0xFFFF).any()
    return (bits >> 16).astype(np.uint16)


def decode(elements: NDArray[np.generic], dtype: DType) -> Values:
    if dtype is DType.BF16:
        elements = (elements.astype(np.uint32) << 16).view(np.float32)
    return elements.astype(np.float64)


@dataclass
class Placed:
    """A view in device memory, the storage around it, and the values it shows."""

    view: TensorView
    storage: Values
    strides: tuple[int, ...]
    offset: int

    @property
    def values(self) -> Values:
        """The view's values; writing them changes `storage`."""
        start = self.storage[self.offset :]
        strides = tuple(8 * stride for stride in self.strides)
        return np.lib.stride_tricks.as_strided(start, self.view.sizes, strides)


class Bench:
    """A device, and the tensors placed in it."""

    def __init__(self, device: Device, seed: int) -> None:
        self.device = device
        self.rng = random.Random(seed)
        self.numpy = np.random.default_rng(seed)

    def layout(
        self, sizes: tuple[int, ...], order: tuple[int, ...], gaps: bool, repeat: tuple[int, ...]
    ) -> tuple[tuple[int, ...], int]:
        """Strides of a tensor stored outermost first in `order`, and its elements' extent."""
        strides = [0] * len(sizes)
        extent = 1
        for dim in reversed(order):
            if dim in repeat:
                continue
            strides[dim] = extent * (self.rng.randint(2, 3) if gaps else 1)
            extent = strides[dim] * sizes[dim]
        return tuple(strides), extent

    def place(
        self,
        sizes: tuple[int, ...],
        dtype: DType,
        order: tuple[int, ...] | None = None,
        gaps: bool = False,
        repeat: tuple[int, ...] = (),
    ) -> Placed:
        """Small integers in such a layout, at an element offset into their storage."""
        strides, extent = self.layout(sizes, order or tuple(range(len(sizes))), gaps, repeat)
        offset = self.rng.randrange(5)
        storage = self.numpy.integers(-2, 3, offset + extent + 3).astype(np.float64)
        base = self.device.upload(encode(storage, dtype))
        view = TensorView(base, offset * DTYPE_BYTES[dtype], dtype, sizes, strides)
        return Placed(view, storage, strides, offset)

    def place_randomly(
        self, sizes: tuple[int, ...], dtype: DType, may_repeat: bool = True
    ) -> Placed:
        """Dense, permuted, sliced or expanded, as the seed has it."""
        order = list(range(len(sizes)))
        if self.rng.random() < 0.5:
            self.rng.shuffle(order)
        repeat = tuple(dim for dim in order if may_repeat and self.rng.random() < 0.15)
        return self.place(sizes, dtype, tuple(order), self.rng.random() < 0.4, repeat)

    def run(
        self,
        op: str,
        operands: list[Placed],
        result: Placed,
        scalars: Mapping[str, float] | None = None,
    ) -> tuple[Packet, ...]:
        """Lower and execute; the packets."""
        views = [operand.view for operand in operands]
        program = lower(op, views, scalars or {}, [result.view], self.device.config)
        self.device.execute(program)
        return program.packets

    def check(self, result: Placed, expected: Values) -> int:
        """Compare the result's whole storage with `expected` put into it: how many elements."""
        wanted = result.storage.copy()
        moved = Placed(result.view, wanted, result.strides, result.offset)
        moved.values[...] = expected
        dtype = result.view.dtype
        found = decode(
            self.device.download(result.view.buffer.address, wanted.shape, STORAGE[dtype]), dtype
        )
        np.testing.assert_array_equal(found, wanted)
        return prod(result.view.sizes)
