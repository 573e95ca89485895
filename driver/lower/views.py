# SPDX-License-Identifier: Apache-2.0
"""Strided views of device memory, and the algebra that lowering needs. Knows no packets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

from driver.isa import DTYPE_BYTES, MAX_RANK, DType


@dataclass(frozen=True)
class TensorView:
    """Element [i0, …] of the tensor lies at address + Σ i·stride elements, as in torch."""

    address: int
    dtype: DType
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    """In elements; 0 repeats (expanded)."""
    boolean: bool = False
    """torch.bool rather than torch.uint8: both are UINT8, and + means something else."""

    def __post_init__(self) -> None:
        assert len(self.sizes) == len(self.strides)

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.sizes)

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
        return replace(self.reshaped(sizes, strides), address=self.address + offset)

    def selected(self, dim: int, index: int) -> TensorView:
        """One position of a dimension, which vanishes."""
        at = dim % self.rank
        one = self.sliced(at, index, 1)
        return one.reshaped(
            one.sizes[:at] + one.sizes[at + 1 :], one.strides[:at] + one.strides[at + 1 :]
        )

    def windows(self, dim: int, count: int, step: int, size: int, spread: int) -> TensorView:
        """A dimension as windows that may overlap: [.., count, .., size], the window's own last.

        Window i holds the positions i·step + j·spread.
        """
        at = dim % self.rank
        stride = self.strides[at]
        sizes, strides = list(self.sizes), list(self.strides)
        sizes[at], strides[at] = count, stride * step
        return self.reshaped((*sizes, size), (*strides, stride * spread))

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


def pieces(
    views: Sequence[TensorView], apart: int | None = None
) -> Iterator[tuple[list[TensorView], int]]:
    """The views of one rank cut so that descriptors hold them, with the place of dimension `apart`.

    Sizes are alike but in `apart`, which no other dimension is merged with. The other dimensions
    merge where they can; what is still more than a descriptor holds becomes several pieces.
    """
    merged, apart = _merged(views, apart)
    rank = merged[0].rank
    if rank <= MAX_RANK:
        yield merged, -1 if apart is None else apart
        return
    looped = min((at for at in range(rank) if at != apart), key=lambda at: merged[0].sizes[at])
    if apart is not None and looped < apart:
        apart -= 1
    for index in range(merged[0].sizes[looped]):
        yield from pieces([view.selected(looped, index) for view in merged], apart)


def _merged(views: Sequence[TensorView], apart: int | None) -> tuple[list[TensorView], int | None]:
    """Neighbouring dimensions as one where all views allow it; those before and after `apart`."""
    groups = [range(views[0].rank)]
    if apart is not None:
        groups = [range(apart), range(apart, apart + 1), range(apart + 1, views[0].rank)]
    sizes: list[tuple[int, ...]] = [() for _ in views]
    strides: list[tuple[int, ...]] = [() for _ in views]
    place = None
    for number, group in enumerate(groups):
        span = slice(group.start, group.stop)
        if apart is not None and number == 1:
            place = len(sizes[0])
            own, steps = (
                [view.sizes[span] for view in views],
                [view.strides[span] for view in views],
            )
        else:
            shape, walks = collapse(views[0].sizes[span], *(view.strides[span] for view in views))
            if shape == (1,) and apart is not None:
                continue
            own, steps = [shape] * len(views), list(walks)
        sizes = [a + b for a, b in zip(sizes, own, strict=True)]
        strides = [a + b for a, b in zip(strides, steps, strict=True)]
    merged = [view.reshaped(*walk) for view, *walk in zip(views, sizes, strides, strict=True)]
    return merged, place
