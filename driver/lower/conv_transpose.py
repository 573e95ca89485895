# SPDX-License-Identifier: Apache-2.0
"""Transposed convolution: each input element times the weights, added up where the windows lie.

One product gives [N, O·K, positions] in fp32, then one pass per place of the kernel adds it. What a
product takes is kept below a limit by cutting images and output channels.
"""

from __future__ import annotations

from math import prod

from driver.isa import DTYPE_BYTES, DType
from driver.lower.builder import ProgramBuilder
from driver.lower.contraction import contract
from driver.lower.convert import require_floats
from driver.lower.overlap import add_windows
from driver.runtime.views import TensorView, dense

_PRODUCT_BYTES = 1 << 23


def transposed(
    b: ProgramBuilder,
    out: TensorView,
    x: TensorView,
    weight: TensorView,
    bias: TensorView | None,
    steps: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]],
    groups: int,
) -> None:
    """out [N, O, …] of x [N, C, …] and weight [C, O ÷ groups, kernel…]; steps: stride, padding,
    dilation. Floats only."""
    require_floats(b, x)
    kernel, spatial = weight.sizes[2:], x.sizes[2:]
    rank = len(kernel)
    inputs = x.split(1, (groups, x.sizes[1] // groups))
    weights = weight.split(0, (groups, x.sizes[1] // groups))
    weights = weights.permuted([0, *range(2, weights.rank), 1])
    per_group = weight.sizes[1]
    target = out.split(1, (groups, per_group))
    one = DTYPE_BYTES[DType.FP32] * groups * prod(kernel) * prod(spatial)
    channels = min(per_group, max(1, _PRODUCT_BYTES // one))
    images = min(x.sizes[0], max(1, _PRODUCT_BYTES // (one * channels)))
    room = b.temp(DType.FP32, (images, groups, channels * prod(kernel), prod(spatial)))
    for image in range(0, x.sizes[0], images):
        many = min(images, x.sizes[0] - image)
        for first in range(0, per_group, channels):
            depth = min(channels, per_group - first)
            columns = dense(room.buffer, DType.FP32, (many, groups, depth, *kernel, *spatial))
            left = weights.sliced(1, first, depth).inserted(0, many)
            contract(b, left, inputs.sliced(0, image, many), columns, (1 + rank, 1, rank))
            part = target.sliced(0, image, many).sliced(2, first, depth)
            stride, padding, dilation = steps
            addend = None if bias is None else _per_channel(bias, part, groups, first, depth)
            add_windows(b, columns, part, dilation, padding, stride, addend)


def _per_channel(
    bias: TensorView, part: TensorView, groups: int, first: int, depth: int
) -> TensorView:
    """The bias of these channels beside [N, groups, depth, spatial…]."""
    lines = bias.split(0, (groups, bias.count // groups)).sliced(1, first, depth)
    spatial = part.rank - 3
    return lines.reshaped((*lines.sizes, *(1,) * spatial), (*lines.strides, *(0,) * spatial))
