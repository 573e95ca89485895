# SPDX-License-Identifier: Apache-2.0
"""Convolution as a matrix product with the input's windows, laid out in memory first.

Windows [N, C·K, positions] are one copy of an overlapping view; their product with the weights
[O, C·K] is the result in its own layout. A border of zeros takes one more copy. Windows that take
more than _WINDOW_BYTES are laid out and multiplied part by part, in the same memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

from driver.config import HwConfig
from driver.isa import DTYPE_BYTES
from driver.lower import conv_transpose
from driver.lower.builder import ProgramBuilder
from driver.lower.matmul import product
from driver.lower.registry import LoweringTable, RuleFunction
from driver.lower.shape import padded
from driver.runtime.buffer import Buffer
from driver.runtime.views import TensorView, dense

TABLE = LoweringTable()


def each(values: Sequence[int], count: int) -> tuple[int, ...]:
    """One value per spatial dimension."""
    return tuple(values) * count if len(values) == 1 else tuple(values)


def border_sizes(x: TensorView, padding: Sequence[int]) -> tuple[int, ...]:
    """Of x […, spatial…] with its border."""
    lead = x.rank - len(padding)
    spatial = zip(x.sizes[lead:], padding, strict=True)
    return (*x.sizes[:lead], *(size + 2 * pad for size, pad in spatial))


def bordered(b: ProgramBuilder, x: TensorView, padding: Sequence[int]) -> TensorView:
    """x […, spatial…] within a border of zeros, where there is one."""
    if not any(padding):
        return x
    fresh = b.temp(x.dtype, border_sizes(x, padding))
    padded(b, x, fresh, [width for pad in reversed(padding) for width in (pad, pad)], 0)
    return fresh


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

    def in_place(self, x: TensorView, counts: Sequence[int]) -> TensorView | None:
        """[N, C, 1, positions] of x itself: windows of one element whose positions merge."""
        if prod(self.kernel) > 1:
            return None
        view = self.view(x, counts)
        spatial = slice(2 + len(self.kernel), None)
        inner = view.reshaped(view.sizes[spatial], view.strides[spatial]).flattened()
        if inner is None:
            return None
        sizes = (*x.sizes[:2], 1, inner.count)
        return x.reshaped(sizes, (*x.strides[:2], 1, inner.strides[0]))

    def parts(self, x: TensorView, out: TensorView) -> Iterator[tuple[TensorView, TensorView]]:
        """x and out cut by images, then along the spatial dimensions, until windows fit."""
        one = x.sizes[1] * prod(self.kernel) * DTYPE_BYTES[x.dtype]
        total = one * out.sizes[0] * prod(out.sizes[2:])
        dim = next((at for at in (0, *range(2, out.rank)) if out.sizes[at] > 1), None)
        if total <= _WINDOW_BYTES or dim is None:
            yield x, out
            return
        many = max(1, _WINDOW_BYTES // (total // out.sizes[dim]))
        for start in range(0, out.sizes[dim], many):
            count = min(many, out.sizes[dim] - start)
            yield from self.parts(self._needed(x, dim, start, count), out.sliced(dim, start, count))

    def _needed(self, x: TensorView, dim: int, start: int, count: int) -> TensorView:
        """The part of the input from which these results of a dimension are computed."""
        if dim == 0:
            return x.sliced(0, start, count)
        step, reach = self.stride[dim - 2], (self.kernel[dim - 2] - 1) * self.dilation[dim - 2]
        return x.sliced(dim, start * step, (count - 1) * step + reach + 1)


_WINDOW_BYTES = 1 << 23
"""Windows of a convolution take no more memory than this, unless one position's alone do."""


def _laid_out(
    b: ProgramBuilder, x: TensorView, windows: Windows, counts: Sequence[int], room: TensorView
) -> TensorView:
    """[N, C, kernel, positions] of x [N, C, spatial…], in the memory of `room`."""
    view = windows.view(x, counts)
    fresh = dense(room.buffer, x.dtype, view.sizes)
    b.copy(view, fresh)
    shape = (*x.sizes[:2], prod(windows.kernel), prod(counts))
    return fresh.reshaped(shape, (*fresh.strides[:2], prod(counts), 1))


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


def _in_place(b: ProgramBuilder, out: TensorView, call: Convolution) -> None:
    """The product of the weights with the input itself: windows of one element."""
    x, flat = _prepared(b, out, call)
    whole = call.windows.in_place(x, out.sizes[2:])
    assert whole is not None, "the rule's condition"
    _multiply(b, whole, flat, out, call.groups, accumulate=call.bias is not None)


def by_windows(b: ProgramBuilder, out: TensorView, call: Convolution) -> None:
    """The product with windows laid out in memory, part by part."""
    x, flat = _prepared(b, out, call)
    room: TensorView | None = None
    for part, target in call.windows.parts(x, out):
        counts = target.sizes[2:]
        if room is None:  # the first part is the largest
            room = b.temp(x.dtype, call.windows.view(part, counts).sizes)
        laid = _laid_out(b, part, call.windows, counts, room)
        _multiply(b, laid, flat, target, call.groups, accumulate=call.bias is not None)


def _prepared(
    b: ProgramBuilder, out: TensorView, call: Convolution
) -> tuple[TensorView, TensorView]:
    """The input within its border, and the weights as rows; the result holds the bias."""
    if call.bias is not None:
        ones = (1,) * (call.weight.rank - 2)
        per_channel = call.bias.reshaped(
            (*call.bias.sizes, *ones), (*call.bias.strides, *(0 for _ in ones))
        )
        b.copy(b.expanded(per_channel, out.sizes), out)
    return bordered(b, call.x, call.padding), _dense_weight(b, call.weight)


def _is_transposed(hw: HwConfig, out: TensorView, *, transposed: bool, **_: object) -> bool:
    return transposed


def _is_plain(hw: HwConfig, out: TensorView, *, transposed: bool, **_: object) -> bool:
    return not transposed


def _lies_in_place(
    hw: HwConfig,
    out: TensorView,
    *,
    input: TensorView,
    weight: TensorView,
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    transposed: bool,
    **_: object,
) -> bool:
    """Whether windows have one element, and their positions merge into one dimension."""
    rank = weight.rank - 2
    windows = Windows(weight.sizes[2:], each(stride, rank), each(dilation, rank))
    x = input
    if any(padding):
        x = dense(Buffer(0), x.dtype, border_sizes(x, each(padding, rank)))
    return not transposed and windows.in_place(x, out.sizes[2:]) is not None


TABLE.op("convolution", rule="transposed", when=_is_transposed)(_rule(_transposed))
TABLE.op("convolution", rule="in_place", when=_lies_in_place)(_rule(_in_place))
TABLE.op("convolution", rule="windows", when=_is_plain)(_rule(by_windows))


def _dense_weight(b: ProgramBuilder, weight: TensorView) -> TensorView:
    """[O, C·K] of weight [O, C, kernel…], copied where its strides do not merge."""
    inner = weight.reshaped(weight.sizes[1:], weight.strides[1:]).flattened()
    if inner is None:
        fresh = b.temp(weight.dtype, weight.sizes)
        b.copy(weight, fresh)
        return _dense_weight(b, fresh)
    return weight.reshaped((weight.sizes[0], inner.count), (weight.strides[0], inner.strides[0]))


def _multiply(
    b: ProgramBuilder,
    windows: TensorView,
    weight: TensorView,
    out: TensorView,
    groups: int,
    *,
    accumulate: bool,
) -> None:
    """out [N, O, positions…] = weight [O, C·K ÷ groups] · windows [N, C, K, positions]."""
    positions = out.reshaped(out.sizes[2:], out.strides[2:]).flattened()
    if positions is None:
        fresh = b.temp(out.dtype, out.sizes)
        if accumulate:
            b.copy(out, fresh)
        _multiply(b, windows, weight, fresh, groups, accumulate=accumulate)
        b.copy(fresh, out)
        return
    images, channels, taps, count = windows.sizes
    depth = channels // groups * taps
    merged = windows.reshaped((channels, taps), windows.strides[1:3]).flattened()
    assert merged is not None, "windows are dense, or have one tap"
    right = windows.reshaped(
        (images, channels * taps, count), (windows.strides[0], *merged.strides, windows.strides[3])
    ).split(1, (groups, depth))
    per_group = weight.sizes[0] // groups
    left = weight.split(0, (groups, per_group)).inserted(0)
    left = b.expanded(left, (images, groups, per_group, depth))
    result = out.reshaped((*out.sizes[:2], count), (*out.strides[:2], *positions.strides))
    result = result.split(1, (groups, per_group))
    product(b, left, right, result, accumulate=accumulate)
