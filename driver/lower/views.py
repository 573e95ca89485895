# SPDX-License-Identifier: Apache-2.0
"""Strided views of device memory, and the algebra that lowering needs. Knows no packets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from driver.isa import DTYPE_BYTES, DType


@dataclass(frozen=True)
class TensorView:
    """Element [i0, …] of the tensor lies at address + Σ i·stride elements, as in torch."""

    address: int
    dtype: DType
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    """In elements; 0 repeats (expanded)."""

    def __post_init__(self) -> None:
        assert len(self.sizes) == len(self.strides)

    @property
    def count(self) -> int:
        """Elements, repeated ones included."""
        return prod(self.sizes)

    @property
    def is_dense(self) -> bool:
        """Row-major without gaps. Strides of dimensions of size 1 do not matter."""
        return all(
            size == 1 or stride == dense
            for size, stride, dense in zip(
                self.sizes, self.strides, dense_strides(self.sizes), strict=True
            )
        )

    @property
    def repeats(self) -> bool:
        """True when two indices name the same element by a stride of 0."""
        return any(
            size > 1 and not stride for size, stride in zip(self.sizes, self.strides, strict=True)
        )

    def transposed(self) -> TensorView:
        """The view with its last two dimensions exchanged."""
        order = (*range(len(self.sizes) - 2), -1, -2)
        sizes, strides = ([values[at] for at in order] for values in (self.sizes, self.strides))
        return TensorView(self.address, self.dtype, tuple(sizes), tuple(strides))

    def expanded(self, sizes: tuple[int, ...]) -> TensorView | None:
        """The view repeated to `sizes` by torch's broadcasting rules; None when it cannot be."""
        new = len(sizes) - len(self.sizes)
        if new < 0:
            return None
        strides = [0] * new
        for own, size, stride in zip(self.sizes, sizes[new:], self.strides, strict=True):
            if own not in (1, size):
                return None
            strides.append(stride if own == size else 0)
        return TensorView(self.address, self.dtype, sizes, tuple(strides))


def dense(address: int, dtype: DType, sizes: tuple[int, ...]) -> TensorView:
    """A row-major view without gaps."""
    return TensorView(address, dtype, sizes, dense_strides(sizes))


def dense_strides(sizes: Sequence[int]) -> tuple[int, ...]:
    """Strides, in elements, of a row-major tensor without gaps."""
    return tuple(prod(sizes[at + 1 :]) for at in range(len(sizes)))


def size_bytes(view: TensorView) -> int:
    """Bytes of the view's elements, stored densely."""
    return view.count * DTYPE_BYTES[view.dtype]


def collapse(
    sizes: Sequence[int], *strides: Sequence[int]
) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """The fewest dimensions that walk the same elements in the same order in all the stride sets.

    Neighbours merge where the outer stride is the inner size times the inner stride, everywhere;
    sizes of 1 vanish. At least one dimension is left.
    """
    kept: list[tuple[int, list[int]]] = []
    for size, *steps in reversed(list(zip(sizes, *strides, strict=True))):
        if size == 1:
            continue
        if kept:
            inner, inner_steps = kept[-1]
            if all(step == inner * own for step, own in zip(steps, inner_steps, strict=True)):
                kept[-1] = (inner * size, inner_steps)
                continue
        kept.append((size, steps))
    kept = kept[::-1] or [(1, [1] * len(strides))]
    merged = tuple(zip(*(steps for _, steps in kept), strict=True))
    return tuple(size for size, _ in kept), merged
