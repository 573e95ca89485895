# SPDX-License-Identifier: Apache-2.0
"""Convolution as one matrix product of the weights and the input's windows, where they lie.

The result [O, N·positions] is weights [O, C·K] · windows [C·K, N·positions], whose rows have the
dimensions C and kernel, and whose columns N and positions. The sums start from the bias. A border
of zeros takes a copy of the input.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod

from driver.config import HwConfig
from driver.isa import DTYPE_BYTES, WINDOW_GROUP, DType
from driver.lower import conv_transpose
from driver.lower.builder import ProgramBuilder
from driver.lower.contraction import contract
from driver.lower.registry import LoweringTable, RuleFunction
from driver.lower.shape import padded
from driver.runtime.views import TensorView, collapse, dense, dense_strides

TABLE = LoweringTable()
_LAID_OUT_BYTES = 1 << 23
"""What is laid out in memory takes no more, unless one image alone does."""


def each(values: Sequence[int], count: int) -> tuple[int, ...]:
    """One value per spatial dimension."""
    return tuple(values) * count if len(values) == 1 else tuple(values)


def border_sizes(x: TensorView, padding: Sequence[int]) -> tuple[int, ...]:
    """Of x […, spatial…] with its border."""
    lead = x.rank - len(padding)
    spatial = zip(x.sizes[lead:], padding, strict=True)
    return (*x.sizes[:lead], *(size + 2 * pad for size, pad in spatial))


def bordered(b: ProgramBuilder, x: TensorView, padding: Sequence[int]) -> TensorView:
    """x […, spatial…] within a border of zeros, where there is one. To be read only: neighbours may
    share their border."""
    if not any(padding):
        return x
    if len(padding) == 2 and x.dtype is not DType.INT64 and x.count and min(padding) >= 0:
        return _in_shared_border(b, x, *padding)
    fresh = b.temp(x.dtype, border_sizes(x, padding))
    padded(b, x, fresh, [width for pad in reversed(padding) for width in (pad, pad)], 0)
    return fresh


def _in_shared_border(b: ProgramBuilder, x: TensorView, rows: int, columns: int) -> TensorView:
    """Images […, H, W] with so many rows and columns of zeros around each: the columns right of a
    row are those left of the next, the rows below an image those above the next. Only what the
    images leave is filled, so the product reads less and no element is written twice."""
    height, width = x.sizes[-2:]
    images, pitch = prod(x.sizes[:-2]), width + columns
    plane, above = (height + rows) * pitch, rows * pitch + columns
    room = b.temp(x.dtype, (images * plane + above,))
    b.fill(room.reshaped((images + 1, above), (plane, 1)), 0)
    if columns and height > 1:
        beside = room.sliced(0, above + width, columns)
        b.fill(beside.reshaped((images, height - 1, columns), (plane, pitch, 1)), 0)
    lead = [step * plane for step in dense_strides(x.sizes[:-2])]
    inner = room.sliced(0, above, 1)
    b.copy(x, inner.reshaped(x.sizes, (*lead, pitch, 1)))
    return room.reshaped(border_sizes(x, (rows, columns)), (*lead, pitch, 1))


@dataclass(frozen=True)
class Windows:
    """Where the windows of a convolution lie, per spatial dimension."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]

    def view(self, x: TensorView, counts: Sequence[int]) -> TensorView:
        """[N, C, kernel…, positions…] of x [N, C, spatial…], overlapping."""
        for at, size in enumerate(self.kernel):
            x = x.windows(2 + at, counts[at], self.stride[at], size, self.dilation[at])
        rank = len(self.kernel)
        return x.permuted([0, 1, *range(2 + rank, 2 + 2 * rank), *range(2, 2 + rank)])


@dataclass(frozen=True)
class Convolution:
    """The arguments of a convolution, one value per spatial dimension."""

    x: TensorView
    weight: TensorView
    bias: TensorView | None
    padding: tuple[int, ...]
    windows: Windows
    groups: int


def _rule(compute: Callable[[ProgramBuilder, TensorView, Convolution], None]) -> RuleFunction:
    """input [N, C, …] * weight [O, C ÷ groups, …] + bias [O], by `compute`."""

    def rule(
        b: ProgramBuilder,
        out: TensorView,
        input: TensorView,
        weight: TensorView,
        bias: TensorView | None,
        stride: tuple[int, ...],
        padding: tuple[int, ...],
        dilation: tuple[int, ...],
        transposed: bool,
        output_padding: tuple[int, ...],
        groups: int,
    ) -> None:
        rank = weight.rank - 2
        windows = Windows(weight.sizes[2:], each(stride, rank), each(dilation, rank))
        call = Convolution(input, weight, bias, each(padding, rank), windows, groups)
        compute(b, out, call)

    return rule


def _transposed(b: ProgramBuilder, out: TensorView, call: Convolution) -> None:
    steps = (call.windows.stride, call.padding, call.windows.dilation)
    conv_transpose.transposed(b, out, call.x, call.weight, call.bias, steps, call.groups)


def by_windows(b: ProgramBuilder, out: TensorView, call: Convolution) -> None:
    """One product: the weights, and the windows of the input where it lies."""
    groups, rank = call.groups, len(call.windows.kernel)
    x = bordered(b, call.x, call.padding)
    per_group = out.sizes[1] // groups
    windows = windows_of(x, call.windows, out.sizes[2:], groups)
    if not fits(windows, 1 + rank):
        _by_planes(b, out, replace(call, x=x, padding=(0,) * rank))
        return
    weight = call.weight
    if not fits(weight, 1 + rank):
        weight = dense_copy(b, weight)
    start = None
    if call.bias is not None:
        start = call.bias.split(0, (groups, per_group))
        for _ in range(1 + rank):
            start = start.inserted(start.rank)
    left = weight.split(0, (groups, per_group))
    result = by_channel(out, groups)
    contract(b, left, windows, result, (1, 1 + rank, 1 + rank), start=start)


def windows_of(x: TensorView, windows: Windows, counts: Sequence[int], groups: int) -> TensorView:
    """[groups, C, kernel…, N, positions…] of x [N, groups·C, spatial…]."""
    view = windows.view(x, counts).split(1, (groups, x.sizes[1] // groups))
    rank = len(windows.kernel)
    return view.permuted([1, 2, *range(3, 3 + rank), 0, *range(3 + rank, view.rank)])


def by_channel(view: TensorView, groups: int) -> TensorView:
    """[groups, C, N, spatial…] of a view [N, groups·C, spatial…]."""
    split = view.split(1, (groups, view.sizes[1] // groups))
    return split.permuted([1, 2, 0, *range(3, split.rank)])


def fits(view: TensorView, dims: int) -> bool:
    """Whether the dimensions 1 to `dims` of a view merge into as many as windows have."""
    walk = slice(1, 1 + dims)
    return len(collapse(view.sizes[walk], view.strides[walk])[0]) <= WINDOW_GROUP


def dense_copy(b: ProgramBuilder, view: TensorView) -> TensorView:
    """The view, or a copy that is dense."""
    if view.is_dense:
        return view
    fresh = b.temp(view.dtype, view.sizes)
    b.copy(view, fresh)
    return fresh


def _by_planes(b: ProgramBuilder, out: TensorView, call: Convolution) -> None:
    """A volume's windows have a dimension too many: those of the first are laid out in memory, next
    to the channels, for as many images at once as _LAID_OUT_BYTES hold."""
    x, windows = call.x, call.windows
    kernel, places = windows.kernel[0], out.sizes[2]
    sizes = (x.sizes[1], kernel, places, *x.sizes[3:])
    many = max(1, _LAID_OUT_BYTES // (prod(sizes) * DTYPE_BYTES[x.dtype]))
    room = b.temp(x.dtype, (min(many, x.sizes[0]), *sizes))
    weight = dense_copy(b, call.weight)
    flat = dense(
        weight.buffer,
        weight.dtype,
        (weight.sizes[0], weight.sizes[1] * kernel, 1, *weight.sizes[3:]),
        weight.offset_bytes,
    )
    one = (1,)
    inner = Windows(one + windows.kernel[1:], one + windows.stride[1:], one + windows.dilation[1:])
    for first in range(0, x.sizes[0], many):
        count = min(many, x.sizes[0] - first)
        patches = x.sliced(0, first, count).windows(
            2, places, windows.stride[0], kernel, windows.dilation[0]
        )
        laid = room.sliced(0, 0, count)
        b.copy(patches.permuted([0, 1, patches.rank - 1, *range(2, patches.rank - 1)]), laid)
        lines = dense(room.buffer, x.dtype, (count, x.sizes[1] * kernel, places, *x.sizes[3:]))
        part = replace(call, x=lines, weight=flat, windows=inner)
        by_windows(b, out.sliced(0, first, count), part)


def _is_transposed(hw: HwConfig, out: TensorView, *, transposed: bool, **_: object) -> bool:
    return transposed


def _is_plain(hw: HwConfig, out: TensorView, *, transposed: bool, **_: object) -> bool:
    return not transposed


TABLE.op("convolution", rule="transposed", when=_is_transposed)(_rule(_transposed))
TABLE.op("convolution", rule="windows", when=_is_plain)(_rule(by_windows))
