# SPDX-License-Identifier: Apache-2.0
"""Pooling: one dimension after the other, each window position one pass over strided views.

Positions outside the input are left out of the passes, so nothing is padded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from driver.isa import DTYPE_BYTES, DType
from driver.lower import long
from driver.lower.convert import convert, is_float
from driver.lower.elementwise import divide_by, is_power_of_two, maximum
from driver.lower.program import ProgramBuilder
from driver.lower.reduce import reduce
from driver.lower.registry import Scalar, Table
from driver.lower.views import TensorView

TABLE = Table()


@dataclass(frozen=True)
class _Axis:
    """The windows along one dimension: window i starts at i·stride − pad, has `size` positions."""

    length: int
    count: int
    size: int
    stride: int
    pad: int
    spread: int = 1

    def valid(self, position: int) -> range:
        """The windows whose `position`-th element lies inside the input."""
        offset = position * self.spread - self.pad
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


def _part(view: TensorView, dim: int, axis: _Axis, position: int, windows: range) -> TensorView:
    """The input's elements at one position of these windows."""
    start = windows.start * axis.stride + position * axis.spread - axis.pad
    return view.sliced(dim, start, len(windows), axis.stride)


def _along(
    b: ProgramBuilder,
    program: str,
    x: TensorView,
    out: TensorView,
    dim: int,
    axis: _Axis,
    scale: float = 1.0,
) -> None:
    """out = amax or sum of x over the windows of one dimension; a sum may be scaled."""
    first: TensorView | None = None
    if axis.is_inside:
        first = _part(x, dim, axis, 0, range(axis.count))
    else:
        b.fill(out, 0 if program == "sum" else _lowest(out))
    if axis.size == 1 and first is not None:
        convert(b, first, out)
        return
    for position in range(0 if first is None else 1, axis.size):
        windows = axis.valid(position)
        if windows:
            target = out.sliced(dim, windows.start, len(windows))
            source = _part(x, dim, axis, position, windows)
            last = position == axis.size - 1
            if program == "amax":
                maximum(b, target, first or target, source)
            elif scale != 1.0 and last:
                b.vector("add_scale", (first or target, source), target, scale)
            else:
                b.vector("add", (first or target, source), target, 1.0)
            first = None


def _lowest(view: TensorView) -> Scalar:
    """What is below every number of the view's type: the maximum of an empty window."""
    if is_float(view):
        return -math.inf
    return 0 if view.dtype is DType.UINT8 else -(1 << 8 * DTYPE_BYTES[view.dtype] - 1)


def _pooled(
    b: ProgramBuilder,
    program: str,
    x: TensorView,
    out: TensorView,
    axes: Sequence[_Axis],
    scale: float = 1.0,
) -> None:
    """out = the reduction of x over all windows; the first of the last two dimensions first."""
    wide = out.dtype if program == "amax" else DType.FP32
    rows = b.temp(wide, (*x.sizes[:-2], axes[0].count, x.sizes[-1]))
    _along(b, program, x, rows, x.rank - 2, axes[0])
    _along(b, program, rows, out, x.rank - 1, axes[1], scale)


def _pair(values: Sequence[int]) -> tuple[int, int]:
    """Height and width; one number means both."""
    return values[0], values[-1]


def _axes(
    x: TensorView,
    out: TensorView,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int] = (1,),
) -> tuple[_Axis, _Axis]:
    parameters = (_pair(v) for v in (kernel, stride or kernel, padding, dilation))
    height, width = (
        _Axis(length, count, *numbers)
        for length, count, *numbers in zip(x.sizes[-2:], out.sizes[-2:], *parameters, strict=True)
    )
    return height, width


# ---------------------------------------------------------------------- maximum
@TABLE.op("max_pool2d_with_indices", outputs=2)
def max_pool2d_with_indices(
    b: ProgramBuilder,
    outs: tuple[TensorView, TensorView | None],
    self: TensorView,
    kernel_size: tuple[int, ...],
    stride: tuple[int, ...] = (),
    padding: tuple[int, ...] = (0,),
    dilation: tuple[int, ...] = (1,),
    ceil_mode: bool = False,
) -> None:
    """The largest element of each window, and its place in the image"""
    out, indices = outs
    axes = _axes(self, out, kernel_size, stride, padding, dilation)
    _pooled(b, "amax", self, out, axes)
    if indices is not None:
        _places(b, self, out, indices, axes)


@TABLE.op("max_pool2d")
def max_pool2d(
    b: ProgramBuilder,
    out: TensorView,
    self: TensorView,
    kernel_size: tuple[int, ...],
    stride: tuple[int, ...] = (),
    padding: tuple[int, ...] = (0,),
    dilation: tuple[int, ...] = (1,),
    ceil_mode: bool = False,
) -> None:
    """The largest element of each window"""
    axes = _axes(self, out, kernel_size, stride, padding, dilation)
    _pooled(b, "amax", self, out, axes)


def _places(
    b: ProgramBuilder,
    x: TensorView,
    best: TensorView,
    indices: TensorView,
    axes: tuple[_Axis, _Axis],
) -> None:
    """Which position of its window each maximum is: the first that equals it, or the last NaN.

    Passes go backwards, so that the first match stays. Then the window's own place is added.
    """
    height, width = axes
    found = b.temp(DType.INT32, indices.sizes)
    b.fill(found, -1)
    for position in reversed(range(height.size * width.size)):
        row, column = divmod(position, width.size)
        ranges = (height.valid(row), width.valid(column))
        if not all(ranges):
            continue
        source, peak, place = x, best, found
        for dim, axis, at, windows in zip((-2, -1), axes, (row, column), ranges, strict=True):
            source = _part(source, dim, axis, at, windows)
            peak, place = (view.sliced(dim, windows.start, len(windows)) for view in (peak, place))
        offset = row * height.spread * width.length + column * width.spread
        _match(b, source, peak, place, offset)
    origins = [b.temp(DType.INT32, (axis.count,)) for axis in axes]
    for origin, axis, step in zip(origins, axes, (width.length, 1), strict=True):
        b.vector("int_range", (), origin, -axis.pad * step, axis.stride * step)
    b.vector("int_add3", (found, origins[0].inserted(1), origins[1]), indices)


def _match(
    b: ProgramBuilder, source: TensorView, peak: TensorView, place: TensorView, offset: int
) -> None:
    """place = offset where the source equals the peak, or is a NaN that comes later."""
    if is_float(source):
        b.vector("match_index", (source, peak, place), place, offset)
        return
    found = long.compared(b, "eq", place.sizes, source, peak)
    b.vector("masked_fill", (place, found), place, offset)


# ---------------------------------------------------------------------- mean
@TABLE.op("avg_pool2d")
def avg_pool2d(
    b: ProgramBuilder,
    out: TensorView,
    self: TensorView,
    kernel_size: tuple[int, ...],
    stride: tuple[int, ...] = (),
    padding: tuple[int, ...] = (0,),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> None:
    """The mean of each window; divided by the positions that count, or by the number given"""
    if not is_float(self):
        raise b.unsupported("dtype", self.dtype.name, "a floating-point type")
    axes = _axes(self, out, kernel_size, stride, padding)
    counts = [
        [axis.elements(window, padding=count_include_pad) for window in range(axis.count)]
        for axis in axes
    ]
    if divisor_override is not None:
        counts = [[divisor_override] * axes[0].count, [1] * axes[1].count]
    divisor = prod(line[0] for line in counts)
    alike = all(len(set(line)) == 1 for line in counts)
    if alike and axes[1].is_inside and axes[1].size > 1 and is_power_of_two(divisor):
        _pooled(b, "sum", self, out, axes, 1.0 / divisor)
        return
    sums = out if out.dtype is DType.FP32 else b.temp(DType.FP32, out.sizes)
    _pooled(b, "sum", self, sums, axes)
    _divide(b, sums, out, counts)


def _divide(
    b: ProgramBuilder, sums: TensorView, out: TensorView, counts: Sequence[Sequence[int]]
) -> None:
    """out = sums ÷ (count of the row · count of the column)"""
    if all(len(set(line)) == 1 for line in counts):
        divide_by(b, sums, out, prod(line[0] for line in counts))
        return
    lines = [_vector(b, line) for line in counts]
    divisor = b.temp(DType.FP32, out.sizes[-2:])
    b.vector("mul", (lines[0].inserted(1), lines[1]), divisor)
    b.vector("div", (sums, divisor), out)


def _vector(b: ProgramBuilder, values: Sequence[int]) -> TensorView:
    """The numbers in memory, one fill for each run of equal ones."""
    line = b.temp(DType.FP32, (len(values),))
    start = 0
    for at in range(1, len(values) + 1):
        if at == len(values) or values[at] != values[start]:
            b.fill(line.sliced(0, start, at - start), float(values[start]))
            start = at
    return line


@TABLE.op("_adaptive_avg_pool2d", "adaptive_avg_pool2d")
def adaptive_avg_pool2d(
    b: ProgramBuilder, out: TensorView, self: TensorView, output_size: tuple[int, ...]
) -> None:
    """Means of windows that divide the image as evenly as they can"""
    x = self
    lengths, counts = x.sizes[-2:], out.sizes[-2:]
    if all(length % count == 0 for length, count in zip(lengths, counts, strict=True)):
        kernel = tuple(length // count for length, count in zip(lengths, counts, strict=True))
        if prod(kernel) <= _FEW:
            avg_pool2d(b, out, x, kernel)
            return
    bounds = [
        [(at * length // count, -(-(at + 1) * length // count)) for at in range(count)]
        for length, count in zip(lengths, counts, strict=True)
    ]
    rows = b.temp(DType.FP32, (*x.sizes[:-2], counts[0], lengths[1]))
    sums = out if out.dtype is DType.FP32 else b.temp(DType.FP32, out.sizes)
    for source, target, dim, windows in ((x, rows, -2, bounds[0]), (rows, sums, -1, bounds[1])):
        for at, (start, stop) in enumerate(windows):
            part = source.sliced(dim, start, stop - start)
            reduce(b, "sum", part, target.sliced(dim, at, 1), (source.rank + dim,))
    _divide(b, sums, out, [[stop - start for start, stop in line] for line in bounds])


_FEW = 16
"""Windows of so many elements are cheaper position by position than as reductions."""
