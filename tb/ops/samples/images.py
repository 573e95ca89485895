# SPDX-License-Identifier: Apache-2.0
"""Samples of padding, upsampling, shuffles, windows as columns and transposed convolution."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from tb.ops.samples.model import FLOATS, INTS, Sample, T

_ALL = (*FLOATS, *INTS)
_FACTORS = (None, 1.3, 2.0, 0.7)


def _pads() -> Iterator[Sample]:
    shapes: tuple[tuple[tuple[int, ...], list[int], list[int]], ...] = (
        ((2, 3, 7), [2, 3], [9, 0]),
        ((3, 5, 6), [5, 0, 1, 4], [0, 8, 2, 0]),
        ((2, 2, 4, 3, 5), [2, 3, 1, 0, 0, 2], [4, 0, 0, 3, 1, 1]),
    )
    for dims, (shape, mirrored, repeated) in enumerate(shapes, 1):
        yield Sample(f"aten.reflection_pad{dims}d.default", (T(shape), mirrored), _ALL)
        yield Sample(f"aten.replication_pad{dims}d.default", (T(shape), repeated), _ALL)
    yield Sample("aten.reflection_pad2d.default", (T((2, 3, 5, 6)), [0, 0, 0, 2]), _ALL)


def _shuffles() -> Iterator[Sample]:
    yield Sample("aten.pixel_shuffle.default", (T((2, 12, 3, 5)), 2), _ALL)
    yield Sample("aten.pixel_shuffle.default", (T((9, 2, 2)), 3), _ALL)
    yield Sample("aten.pixel_unshuffle.default", (T((2, 3, 6, 4)), 2), _ALL)
    for name in ("channel_shuffle", "native_channel_shuffle"):
        yield Sample(f"aten.{name}.default", (T((2, 6, 3, 2)), 3), _ALL)
    image = T((2, 3, 7, 6))
    yield Sample("aten.im2col.default", (image, [3, 2], [1, 2], [1, 0], [2, 1]))
    yield Sample("aten.im2col.default", (T((3, 7, 6)), [2, 2], [1, 1], [0, 0], [1, 1]))
    columns = ((T((2, 12, 20)), [6, 5], [2, 2]), (T((12, 16)), [5, 5], [2, 2]))
    for args in columns:
        yield Sample("aten.col2im.default", (*args, [1, 1], [0, 0], [1, 1]))
    spread = (T((2, 12, 9)), [6, 5], [3, 2], [1, 1], [1, 1], [2, 2])
    yield Sample("aten.col2im.default", spread)


_LINES: tuple[tuple[int, ...], ...] = ((2, 3, 5), (2, 3, 5, 4), (1, 3, 5, 4, 3))
_SIZES: tuple[tuple[list[int], ...], ...] = (
    ([5], [10], [13], [3]),
    ([10, 11], [5, 8], [10, 8], [4, 9]),
    ([10, 11, 6], [5, 4, 3], [10, 8, 6]),
)


def _nearest() -> Iterator[Sample]:
    types = (*FLOATS, torch.uint8)
    for dims, (shape, sizes) in enumerate(zip(_LINES, _SIZES, strict=True), 1):
        for name in (f"upsample_nearest{dims}d", f"_upsample_nearest_exact{dims}d"):
            for size in sizes:
                for factor in _FACTORS[: 4 if dims == 1 else 2]:
                    args = (T(shape), size, *(factor,) * dims)
                    yield Sample(f"aten.{name}.default", args, types, special=False)


def _weighted() -> Iterator[Sample]:
    names = ("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d")
    rows: tuple[tuple[Any, ...], ...] = tuple(zip(names, _LINES, _SIZES, strict=True))
    for name, shape, sizes in (*rows, ("upsample_bicubic2d", _LINES[1], _SIZES[1])):
        for corners in (True, False):
            for size, factor in zip(sizes, _FACTORS, strict=False):
                args = (T(shape), size, corners, *(factor,) * len(size))
                yield Sample(f"aten.{name}.default", args, special=False)


_TRANSPOSED: tuple[tuple[Any, ...], ...] = (
    ((2, 4, 5, 3), (4, 6, 3, 2), [1, 1], [0, 0], [1, 1], [0, 0], 1),
    ((2, 4, 5, 3), (4, 3, 3, 2), [2, 1], [1, 0], [1, 1], [1, 0], 2),
    ((2, 4, 5, 3), (4, 3, 3, 2), [2, 3], [1, 2], [2, 1], [1, 1], 2),
    ((3, 4, 5), (4, 6, 3), [2], [1], [1], [1], 1),
    ((1, 4, 3, 2, 3), (4, 3, 3, 2, 2), [2, 1, 2], [1, 0, 0], [1, 1, 1], [1, 0, 1], 1),
)
"""Input, weight, stride, padding, dilation, output padding, groups."""


def _transposed() -> Iterator[Sample]:
    for number, (x, w, stride, padding, dilation, extra, groups) in enumerate(_TRANSPOSED):
        bias = T((w[1] * groups,), plain=True) if number % 2 == 0 else None
        tail = (stride, padding, dilation, True, extra, groups)
        args = (T(x), T(w, plain=True), bias, *tail)
        yield Sample("aten.convolution.default", args, special=False)


SAMPLES = (*_pads(), *_shuffles(), *_nearest(), *_weighted(), *_transposed())
