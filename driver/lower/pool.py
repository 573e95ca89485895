# SPDX-License-Identifier: Apache-2.0
"""Windows of pooling, and maxima: one dimension after the other, each window position one pass
over strided views. Positions outside the input are left out of the passes, so nothing is padded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from driver.isa import DTYPE_BYTES, DType
from driver.lower import long
from driver.lower.builder import ProgramBuilder
from driver.lower.conv import each
from driver.lower.convert import convert, is_float
from driver.lower.elementwise import maximum
from driver.lower.positions import positions
from driver.lower.registry import LoweringTable, RuleFunction, Scalar
from driver.runtime.views import TensorView, dense_strides

TABLE = LoweringTable()


@dataclass(frozen=True)
class PoolingAxis:
    """The windows along one dimension: window i starts at i·stride − pad, has `size` positions."""

    length: int
    count: int
    size: int
    stride: int
    pad: int
    dilation: int = 1

    def valid(self, position: int) -> range:
        """The windows whose `position`-th element lies inside the input."""
        offset = position * self.dilation - self.pad
        first = max(0, -(offset // self.stride))
        last = (self.length - 1 - offset) // self.stride
        return range(first, max(first, min(self.count, last + 1)))

    @property
    def is_inside(self) -> bool:
        """Whether every position of every window lies inside."""
        return all(len(self.valid(at)) == self.count for at in (0, self.size - 1))

    def elements(self, window: int, *, padding: bool) -> int:
        """How many of a window's positions count: those inside, or inside the padded input."""
        start = window * self.stride - self.pad
        low, high = (-self.pad, self.length + self.pad) if padding else (0, self.length)
        return min(start + self.size, high) - max(start, low)


def part_of(
    view: TensorView, dim: int, axis: PoolingAxis, position: int, windows: range
) -> TensorView:
    """The input's elements at one position of these windows."""
    start = windows.start * axis.stride + position * axis.dilation - axis.pad
    return view.sliced(dim, start, len(windows), axis.stride)


def _along(
    b: ProgramBuilder,
    program: str,
    x: TensorView,
    out: TensorView,
    dim: int,
    axis: PoolingAxis,
    scale: float = 1.0,
) -> None:
    """out = amax or sum of x over the windows of one dimension; a sum may be scaled."""
    first: TensorView | None = None
    if axis.is_inside:
        first = part_of(x, dim, axis, 0, range(axis.count))
    else:
        b.fill(out, 0 if program == "sum" else _lowest(out))
    if axis.size == 1 and first is not None:
        convert(b, first, out)
        return
    for position in range(0 if first is None else 1, axis.size):
        windows = axis.valid(position)
        if windows:
            target = out.sliced(dim, windows.start, len(windows))
            source = part_of(x, dim, axis, position, windows)
            last = position == axis.size - 1
            if program == "amax":
                maximum(b, target, first or target, source)
            elif scale != 1.0 and last:
                b.vector("add_scale", (first or target, source), target, scale)
            else:
                b.vector("add", (first or target, source), target, 1.0)
            first = None


def _lowest(view: TensorView) -> Scalar:
    """A number below every other of the view's type: the maximum of an empty window."""
    if is_float(view):
        return -math.inf
    return 0 if view.dtype is DType.UINT8 else -(1 << 8 * DTYPE_BYTES[view.dtype] - 1)


def pooled(
    b: ProgramBuilder,
    program: str,
    x: TensorView,
    out: TensorView,
    axes: Sequence[PoolingAxis],
    scale: float = 1.0,
) -> None:
    """out = the reduction of x over all windows of the last dimensions, one after the other."""
    wide = out.dtype if program == "amax" else DType.FP32
    first = x.rank - len(axes)
    for number, axis in enumerate(axes):
        dim, last = first + number, number == len(axes) - 1
        sizes = (*x.sizes[:dim], axis.count, *x.sizes[dim + 1 :])
        target = out if last else b.temp(wide, sizes)
        _along(b, program, x, target, dim, axis, scale if last else 1.0)
        x = target


def axes_of(
    x: TensorView,
    out: TensorView,
    dims: int,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int] = (1,),
) -> tuple[PoolingAxis, ...]:
    """The windows along the last `dims` dimensions; one number means all of them."""
    parameters = (each(v, dims) for v in (kernel, stride or kernel, padding, dilation))
    lengths = zip(x.sizes[-dims:], out.sizes[-dims:], *parameters, strict=True)
    return tuple(PoolingAxis(length, count, *numbers) for length, count, *numbers in lengths)


# ---------------------------------------------------------------------- maximum
def _with_indices(dims: int) -> RuleFunction:
    """The largest element of each window, and its place in the image."""

    def rule(
        b: ProgramBuilder,
        outs: tuple[TensorView, TensorView | None],
        self: TensorView,
        kernel_size: tuple[int, ...],
        stride: tuple[int, ...] = (),
        padding: tuple[int, ...] = (0,),
        dilation: tuple[int, ...] = (1,),
        ceil_mode: bool = False,
    ) -> None:
        out, indices = outs
        axes = axes_of(self, out, dims, kernel_size, stride, padding, dilation)
        pooled(b, "amax", self, out, axes)
        if indices is not None:
            places(b, self, out, indices, axes)

    return rule


def _largest(dims: int) -> RuleFunction:
    """The largest element of each window."""

    def rule(
        b: ProgramBuilder,
        out: TensorView,
        self: TensorView,
        kernel_size: tuple[int, ...],
        stride: tuple[int, ...] = (),
        padding: tuple[int, ...] = (0,),
        dilation: tuple[int, ...] = (1,),
        ceil_mode: bool = False,
    ) -> None:
        axes = axes_of(self, out, dims, kernel_size, stride, padding, dilation)
        pooled(b, "amax", self, out, axes)

    return rule


for _dims in (2, 3):
    TABLE.op(f"max_pool{_dims}d_with_indices", outputs=2)(_with_indices(_dims))
    TABLE.op(f"max_pool{_dims}d")(_largest(_dims))


def places(
    b: ProgramBuilder,
    x: TensorView,
    best: TensorView,
    indices: TensorView,
    axes: Sequence[PoolingAxis],
) -> None:
    """Which position of its window each maximum is: the first that equals it, or the last NaN.

    Passes go backwards, so that the first match stays. Then the window's own place is added.
    """
    found = b.temp(DType.INT32, indices.sizes)
    b.fill(found, -1)
    steps = dense_strides([axis.length for axis in axes])
    dims = range(-len(axes), 0)
    for at in reversed(list(product(*(range(axis.size) for axis in axes)))):
        ranges = [axis.valid(position) for axis, position in zip(axes, at, strict=True)]
        if not all(ranges):
            continue
        source, peak, place = x, best, found
        for dim, axis, position, windows in zip(dims, axes, at, ranges, strict=True):
            source = part_of(source, dim, axis, position, windows)
            peak, place = (view.sliced(dim, windows.start, len(windows)) for view in (peak, place))
        offset = sum(p * a.dilation * step for p, a, step in zip(at, axes, steps, strict=True))
        _match(b, source, peak, place, offset)
    _add_origins(b, found, indices, axes, steps)


def _add_origins(
    b: ProgramBuilder,
    found: TensorView,
    indices: TensorView,
    axes: Sequence[PoolingAxis],
    steps: Sequence[int],
) -> None:
    """indices = found + the place at which each window begins, which may lie in the padding."""
    lines = []
    for number, (axis, step) in enumerate(zip(axes, steps, strict=True)):
        line = positions(b, axis.count, -axis.pad * step, axis.stride * step)
        for _ in axes[number + 1 :]:
            line = line.inserted(line.rank)
        lines.append(line)
    for line in lines[:-2]:
        b.vector("int_add", (found, line), found, 1)
    b.vector("int_add3", (found, lines[-2], lines[-1]), indices)


def _match(
    b: ProgramBuilder, source: TensorView, peak: TensorView, place: TensorView, offset: int
) -> None:
    """place = offset where the source equals the peak, or is a NaN that comes later."""
    if is_float(source):
        b.vector("match_index", (source, peak, place), place, offset)
        return
    found = long.compared(b, "eq", place.sizes, source, peak)
    b.vector("masked_fill", (place, found), place, offset)
