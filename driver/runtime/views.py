# SPDX-License-Identifier: Apache-2.0
"""Strided views of buffers, and their algebra. Knows no packets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from driver.isa import DTYPE_BYTES, DType
from driver.runtime.buffer import Buffer


@dataclass(frozen=True)
class TensorView:
    """A tensor in a buffer: element [i0, …] lies at offset + Σ i·stride elements, as in torch."""

    buffer: Buffer
    offset_bytes: int
    """Of element [0, …, 0] in the buffer."""
    dtype: DType
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    """In elements; 0 repeats (expanded)."""
    boolean: bool = False
    """torch.bool rather than torch.uint8: both are UINT8, and + means something else."""

    def __post_init__(self) -> None:
        assert len(self.sizes) == len(self.strides)

    @property
    def address(self) -> int:
        """Of element [0, …, 0]; the buffer must be placed."""
        return self.buffer.address + self.offset_bytes

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.sizes)

    @property
    def count(self) -> int:
        """Elements, repeated ones included."""
        return prod(self.sizes)

    @property
    def extent_bytes(self) -> int:
        """From the first to the last byte of the elements; 0 without any."""
        last = sum((size - 1) * step for size, step in zip(self.sizes, self.strides, strict=True))
        return (last + 1) * DTYPE_BYTES[self.dtype] if self.count else 0

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

    def reshaped(self, sizes: Sequence[int], strides: Sequence[int]) -> TensorView:
        """Other sizes and strides from the same first element."""
        return replace(self, sizes=tuple(sizes), strides=tuple(strides))

    def permuted(self, order: Sequence[int]) -> TensorView:
        """Dimension i of the view is dimension order[i] of this one."""
        order = [at % self.rank for at in order]
        return self.reshaped([self.sizes[at] for at in order], [self.strides[at] for at in order])

    def transposed(self) -> TensorView:
        """The view with its last two dimensions exchanged."""
        return self.permuted((*range(self.rank - 2), -1, -2))

    def with_last(self, dims: Sequence[int]) -> TensorView:
        """The view with these dimensions, not negative, moved to the end in this order."""
        return self.permuted([at for at in range(self.rank) if at not in dims] + list(dims))

    def inserted(self, dim: int, size: int = 1, stride: int = 0) -> TensorView:
        """A new dimension before `dim`; by default one element, with `size` a repeated one."""
        at = dim % (self.rank + 1)
        sizes = (*self.sizes[:at], size, *self.sizes[at:])
        return self.reshaped(sizes, (*self.strides[:at], stride, *self.strides[at:]))

    def sliced(self, dim: int, start: int, count: int, step: int = 1) -> TensorView:
        """`count` elements of a dimension, from `start` on, every `step`-th."""
        at = dim % self.rank
        assert count <= 0 or 0 <= start <= start + (count - 1) * step < self.sizes[at]
        sizes, strides = list(self.sizes), list(self.strides)
        offset = start * strides[at] * DTYPE_BYTES[self.dtype] if count > 0 else 0
        sizes[at], strides[at] = max(count, 0), strides[at] * step
        return replace(self.reshaped(sizes, strides), offset_bytes=self.offset_bytes + offset)

    def selected(self, dim: int, index: int) -> TensorView:
        """One position of a dimension, which vanishes."""
        at = dim % self.rank
        one = self.sliced(at, index, 1)
        return one.reshaped(
            one.sizes[:at] + one.sizes[at + 1 :], one.strides[:at] + one.strides[at + 1 :]
        )

    def windows(self, dim: int, count: int, step: int, size: int, dilation: int) -> TensorView:
        """A dimension as windows that may overlap: [.., count, .., size], the window's own last.

        Window i holds the positions i·step + j·dilation.
        """
        at = dim % self.rank
        stride = self.strides[at]
        sizes, strides = list(self.sizes), list(self.strides)
        sizes[at], strides[at] = count, stride * step
        return self.reshaped((*sizes, size), (*strides, stride * dilation))

    def flattened(self) -> TensorView | None:
        """One dimension over all elements in row-major order; None where strides forbid it."""
        sizes, (strides,) = collapse(self.sizes, self.strides)
        return self.reshaped(sizes, strides) if len(sizes) == 1 else None

    def split(self, dim: int, sizes: Sequence[int]) -> TensorView:
        """A dimension as several, row-major; their sizes' product is its own."""
        at = dim % self.rank
        assert prod(sizes) == self.sizes[at]
        steps = [self.strides[at] * step for step in dense_strides(sizes)]
        return self.reshaped(
            (*self.sizes[:at], *sizes, *self.sizes[at + 1 :]),
            (*self.strides[:at], *steps, *self.strides[at + 1 :]),
        )

    def expanded(self, sizes: Sequence[int]) -> TensorView | None:
        """The view repeated to `sizes` by torch's broadcasting rules; None when it cannot be."""
        new = len(sizes) - len(self.sizes)
        if new < 0:
            return None
        strides = [0] * new
        for own, size, stride in zip(self.sizes, sizes[new:], self.strides, strict=True):
            if own not in (1, size):
                return None
            strides.append(stride if own == size else 0)
        return self.reshaped(sizes, strides)


def dense(
    buffer: Buffer, dtype: DType, sizes: tuple[int, ...], offset_bytes: int = 0
) -> TensorView:
    """A row-major view without gaps."""
    return TensorView(buffer, offset_bytes, dtype, sizes, dense_strides(sizes))


def dense_strides(sizes: Sequence[int]) -> tuple[int, ...]:
    """Strides, in elements, of a row-major tensor without gaps."""
    return tuple(prod(sizes[at + 1 :]) for at in range(len(sizes)))


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


def broadcast(*shapes: Sequence[int]) -> tuple[int, ...] | None:
    """The shape that all of these expand to by torch's rules; None when there is none."""
    rank = max(map(len, shapes), default=0)
    padded = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    sizes: list[int] = []
    for column in zip(*padded, strict=True):
        own = {size for size in column if size != 1}
        if len(own) > 1:
            return None
        sizes.append(own.pop() if own else 1)
    return tuple(sizes)
