# SPDX-License-Identifier: Apache-2.0
"""Two walks over elements as one: dimensions cut and ordered anew until a shared operand agrees.

An elementwise pass may visit its elements in any order and shape. What has to hold is that both
passes meet an operand that they share at the same element at the same time.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from driver.isa import DTYPE_BYTES
from driver.runtime.views import TensorView, collapse


@dataclass(frozen=True)
class Axis:
    """One dimension of the common walk, as part of a dimension of each of the two."""

    size: int
    first: int | None
    """Dimension of the first walk; None: the first one is repeated along this axis."""
    first_step: int
    """One step of the axis is so many of that dimension."""
    second: int
    second_step: int


def common_axes(first: TensorView, second: TensorView) -> list[Axis] | None:
    """The axes on which two views of the same elements have equal strides, in the second's order.

    The second may repeat the elements, the first may not. None where the views have no such axes.
    Those of a dimension are all of it: a step along one is as long as those with shorter steps.
    """
    dims, others = _steps(first), _steps(second)
    axes = [Axis(size, None, 0, dim, 1) for step, dim, size, _ in others if step == 0]
    others = [entry for entry in others if entry[0]]
    heapq.heapify(dims)
    heapq.heapify(others)
    while dims and others:
        step, dim, size, taken = heapq.heappop(dims)
        other_step, other, other_size, other_taken = heapq.heappop(others)
        small, large = sorted((size, other_size))
        if step != other_step or large % small:
            return None
        axes.append(Axis(small, dim, taken, other, other_taken))
        if size > small:
            heapq.heappush(dims, (step * small, dim, size // small, taken * small))
        if other_size > small:
            heapq.heappush(others, (step * small, other, other_size // small, other_taken * small))
    if dims or others:
        return None
    return sorted(axes, key=lambda axis: (axis.second, -axis.second_step))


def same_axes(sizes: Sequence[int]) -> list[Axis]:
    """The axes of two walks over the same sizes, dimension for dimension."""
    return [Axis(size, dim, 1, dim, 1) for dim, size in enumerate(sizes) if size > 1]


def with_row(
    axes: Sequence[Axis], first_row: int | None, second_row: int | None
) -> tuple[list[Axis], list[Axis]] | None:
    """(outer axes, axes of the row). A row is the innermost dimension of a walk to which it means
    something, and has to be the innermost one of both. None where it cannot be."""
    row = [axis for axis in axes if second_row is not None and axis.second == second_row]
    if first_row is not None:
        own = [axis for axis in axes if axis.first == first_row]
        own.sort(key=lambda axis: -axis.first_step)
        if second_row is not None and own != row:
            return None
        row = own
    return [axis for axis in axes if axis not in row], row


def along(view: TensorView, axes: Sequence[Axis], *, second: bool) -> TensorView:
    """The view of one of the two walks, on the axes."""
    strides = []
    for axis in axes:
        dim = axis.second if second else axis.first
        step = axis.second_step if second else axis.first_step
        strides.append(0 if dim is None or view.sizes[dim] == 1 else view.strides[dim] * step)
    return view.reshaped([axis.size for axis in axes], strides)


def merged_dims(
    views: Sequence[TensorView], outer: int, *, has_row: bool
) -> list[TensorView] | None:
    """The views, whose first `outer` dimensions and, with `has_row`, the others merge where all
    allow it. None where the row does not become one dimension."""
    sizes = views[0].sizes
    shape, walks = collapse(sizes[:outer], *(view.strides[:outer] for view in views))
    if not has_row:
        return [view.reshaped(shape, walk) for view, walk in zip(views, walks, strict=True)]
    row, ends = collapse(sizes[outer:], *(view.strides[outer:] for view in views))
    if len(row) > 1:
        return None
    if shape == (1,):
        shape, walks = (), tuple(() for _ in views)
    return [
        view.reshaped((*shape, *row), (*walk, *end))
        for view, walk, end in zip(views, walks, ends, strict=True)
    ]


def _steps(view: TensorView) -> list[tuple[int, int, int, int]]:
    """(bytes per step, dimension, size, 1) of dimensions with more than one element."""
    width = DTYPE_BYTES[view.dtype]
    walk = enumerate(zip(view.sizes, view.strides, strict=True))
    return [(stride * width, dim, size, 1) for dim, (size, stride) in walk if size > 1]
