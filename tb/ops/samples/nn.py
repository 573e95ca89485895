# SPDX-License-Identifier: Apache-2.0
"""Samples of convolutions, pooling and quantisation."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from tb.ops.samples.model import FLOATS, Sample, T

VOLUMES = (torch.float32,)
"""Types that torch averages volumes in."""
_CONVOLUTIONS: tuple[
    tuple[tuple[int, ...], tuple[int, ...], list[int], list[int], list[int], int], ...
] = (
    ((2, 3, 9, 8), (4, 3, 3, 3), [1, 1], [0, 0], [1, 1], 1),
    ((2, 3, 9, 8), (4, 3, 3, 2), [2, 1], [1, 1], [1, 1], 1),
    ((1, 4, 9, 9), (6, 2, 3, 3), [1, 1], [1, 1], [2, 2], 2),
    ((2, 4, 6, 6), (4, 1, 3, 3), [1, 1], [1, 1], [1, 1], 4),
    ((1, 1, 5, 5), (1, 1, 1, 1), [1, 1], [0, 0], [1, 1], 1),
    ((2, 3, 4, 4), (5, 3, 4, 4), [4, 4], [0, 0], [1, 1], 1),
)
"""Input, weight, stride, padding, dilation, groups."""


def _convolutions() -> Iterator[Sample]:
    for x, w, stride, padding, dilation, groups in _CONVOLUTIONS:
        for bias in (T((w[0],), plain=True), None):
            tail = (stride, padding, dilation, False, [0, 0], groups)
            args = (T(x), T(w, plain=True), bias, *tail)
            yield Sample("aten.convolution.default", args, special=False)
    line = (T((2, 3, 12)), T((4, 3, 5), plain=True), T((4,), plain=True))
    tail = ([2], [2], [1], False, [0], 1)
    yield Sample("aten.convolution.default", (*line, *tail), special=False)


def _pools() -> Iterator[Sample]:
    x = T((2, 3, 9, 8))
    largest = "aten.max_pool2d_with_indices.default"
    mean = "aten.avg_pool2d.default"
    yield Sample(largest, (x, [2, 2]))
    yield Sample(largest, (x, [3, 3], [2, 2], [1, 1]))
    yield Sample(largest, (x, [3, 2], [2, 1], [1, 0], [2, 1]))
    yield Sample(largest, (x, [2, 2], [2, 2], [0, 0], [1, 1], True))
    yield Sample(largest, (T((3, 6, 6), "ties"), [2, 2]))
    yield Sample("aten.max_pool2d.default", (x, [3, 3], [2, 2], [1, 1]))
    yield Sample(mean, (x, [2, 2]))
    yield Sample(mean, (x, [3, 3], [2, 2], [1, 1]))
    yield Sample(mean, (x, [3, 3], [2, 2], [1, 1], False, False))
    yield Sample(mean, (x, [2, 2], [2, 2], [0, 0], True))
    yield Sample(mean, (x, [2, 2], [2, 2], [0, 0], False, True, 3))
    for size in ([1, 1], [3, 4], [4, 5]):
        yield Sample("aten._adaptive_avg_pool2d.default", (x, size))
    yield Sample("aten.adaptive_avg_pool2d.default", (x, [3, 4]))
    for size in ([1, 1], [3, 4], [4, 5]):
        yield Sample("aten.adaptive_max_pool2d.default", (x, size))
    yield Sample("aten.adaptive_max_pool2d.default", (T((2, 7, 9), "ties"), [4, 4]))


def _pools_of_volumes() -> Iterator[Sample]:
    x = T((1, 2, 6, 5, 7))
    for name in ("max_pool3d_with_indices", "max_pool3d"):
        largest = f"aten.{name}.default"
        yield Sample(largest, (x, [2, 2, 2]))
        yield Sample(largest, (x, [3, 2, 2], [2, 1, 2], [1, 1, 0], [1, 1, 2], True))
    mean = "aten.avg_pool3d.default"
    yield Sample(mean, (x, [2, 2, 2]), VOLUMES)
    yield Sample(mean, (x, [3, 2, 3], [2, 2, 1], [1, 1, 1], True, False), VOLUMES)
    yield Sample(mean, (x, [3, 2, 1], [2, 2, 1], [1, 0, 0], False, True, -3), VOLUMES)
    for size in ([1, 1, 1], [3, 2, 4], [2, 5, 7]):
        yield Sample("aten._adaptive_avg_pool3d.default", (x, size))
        yield Sample("aten.adaptive_max_pool3d.default", (x, size))
    yield Sample("aten.adaptive_avg_pool3d.default", (x, [3, 1, 2]))


def _quantised() -> Iterator[Sample]:
    one, zero = T((), "positive", torch.float32), T((), "any", torch.int32)
    each, zeros = T((6,), "positive", torch.float32), T((6,), "any", torch.int32)
    per = {"axis": 1}
    x, codes = T((5, 6)), T((5, 6), dtype=torch.int8)
    sums = T((5, 6), dtype=torch.int32)
    yield Sample("npu.quantize.default", (x, one, zero))
    yield Sample("npu.quantize.default", (x, each, zeros), FLOATS, per)
    rows, row_zeros = T((5,), "positive", torch.float32), T((5,), "any", torch.int32)
    yield Sample("npu.quantize.default", (x, rows, row_zeros), FLOATS, {"axis": 0})
    f32 = (torch.float32,)
    yield Sample("npu.dequantize.default", (codes, rows, row_zeros), f32, {"axis": 0})
    yield Sample("npu.requantize.default", (sums, rows, row_zeros), f32, {"axis": 0})
    yield Sample("npu.dequantize.default", (codes, one, zero), f32)
    yield Sample("npu.dequantize.default", (codes, each, zeros), f32, per)
    yield Sample("npu.requantize.default", (sums, one, zero), f32)
    yield Sample("npu.requantize.default", (sums, each, zeros), f32, per)
    for depth, group in ((16, 16), (43, 8)):
        packed = T((-(-depth // 8), 9), "any", torch.int32)
        scales = T((-(-depth // group), 9), "positive")
        yield Sample("npu.int4_mm.default", (T((5, depth)), packed, scales, group), special=False)


SAMPLES = (*_convolutions(), *_pools(), *_pools_of_volumes(), *_quantised())
