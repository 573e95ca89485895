# SPDX-License-Identifier: Apache-2.0
"""Convolution as a matrix product with the input's windows, laid out in memory first.

Windows [N, C·K, positions] are one copy of an overlapping view; their product with the weights
[O, C·K] is the result in its own layout. A border of zeros takes one more copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from driver.lower.matmul import product
from driver.lower.program import ProgramBuilder
from driver.lower.registry import Table
from driver.lower.shape import padded
from driver.lower.views import TensorView

TABLE = Table()


def _each(values: Sequence[int], count: int) -> tuple[int, ...]:
    """One value per spatial dimension."""
    return tuple(values) * count if len(values) == 1 else tuple(values)


def _bordered(b: ProgramBuilder, x: TensorView, padding: Sequence[int]) -> TensorView:
    """x [N, C, spatial…] within a border of zeros, where there is one."""
    if not any(padding):
        return x
    spatial = zip(x.sizes[2:], padding, strict=True)
    fresh = b.temp(x.dtype, (*x.sizes[:2], *(size + 2 * pad for size, pad in spatial)))
    padded(b, x, fresh, [width for pad in reversed(padding) for width in (pad, pad)], 0)
    return fresh


def _windows(
    b: ProgramBuilder,
    x: TensorView,
    kernel: Sequence[int],
    counts: Sequence[int],
    steps: tuple[Sequence[int], Sequence[int]],
) -> TensorView:
    """[N, C, kernel·…, positions·…] of x [N, C, spatial…]: the view itself where it merges."""
    stride, dilation = steps
    view = x
    for at, size in enumerate(kernel):
        view = view.windows(2 + at, counts[at], stride[at], size, dilation[at])
    rank = len(kernel)
    view = view.permuted([0, 1, *range(2 + rank, 2 + 2 * rank), *range(2, 2 + rank)])
    shape = (*x.sizes[:2], prod(kernel), prod(counts))
    inner = view.reshaped(view.sizes[2 + rank :], view.strides[2 + rank :]).flattened()
    if prod(kernel) == 1 and inner is not None:
        return x.reshaped(shape, (*x.strides[:2], 1, inner.strides[0]))
    fresh = b.temp(x.dtype, view.sizes)
    b.copy(view, fresh)
    return fresh.reshaped(shape, (*fresh.strides[:2], prod(counts), 1))


@TABLE.op("convolution")
def convolution(
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
    """input [N, C, …] * weight [O, C ÷ groups, …] + bias [O]"""
    if transposed:
        raise b.unsupported("transposed", transposed, "False")
    rank = weight.rank - 2
    if bias is not None:
        per_channel = bias.reshaped((*bias.sizes, *(1,) * rank), (*bias.strides, *(0,) * rank))
        b.copy(b.expanded(per_channel, out.sizes), out)
    x = _bordered(b, input, _each(padding, rank))
    steps = (_each(stride, rank), _each(dilation, rank))
    windows = _windows(b, x, weight.sizes[2:], out.sizes[2:], steps)
    _multiply(b, windows, _dense_weight(b, weight), out, groups, accumulate=bias is not None)


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
