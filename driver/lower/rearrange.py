# SPDX-License-Identifier: Apache-2.0
"""Channels to pixels and back, and windows of an image as columns and back."""

from __future__ import annotations

from math import prod

from driver.lower.builder import ProgramBuilder
from driver.lower.conv import bordered, each
from driver.lower.convert import require_floats
from driver.lower.overlap import add_windows
from driver.lower.registry import LoweringTable
from driver.runtime.views import TensorView

TABLE = LoweringTable()


@TABLE.op("pixel_shuffle")
def pixel_shuffle(
    b: ProgramBuilder, out: TensorView, self: TensorView, upscale_factor: int
) -> None:
    """[…, C·r², H, W] as […, C, H·r, W·r]"""
    _exchange(b, out, self, upscale_factor)


@TABLE.op("pixel_unshuffle")
def pixel_unshuffle(
    b: ProgramBuilder, out: TensorView, self: TensorView, downscale_factor: int
) -> None:
    """[…, C, H·r, W·r] as […, C·r², H, W]"""
    _exchange(b, self, out, downscale_factor, back=True)


def _exchange(
    b: ProgramBuilder, wide: TensorView, deep: TensorView, factor: int, *, back: bool = False
) -> None:
    """Between `wide` […, C, H·r, W·r] and `deep` […, C·r², H, W]."""
    channels, rows, columns = wide.sizes[-3:]
    rank = wide.rank
    pixels = wide.split(-1, (columns // factor, factor)).split(-3, (rows // factor, factor))
    lead = range(rank - 2)  # …, C; then H, r, W, r
    pixels = pixels.permuted([*lead, rank - 1, rank + 1, rank - 2, rank])
    stacked = deep.split(-3, (channels, factor, factor))
    b.copy(*((pixels, stacked) if back else (stacked, pixels)))


@TABLE.op("channel_shuffle", "native_channel_shuffle")
def channel_shuffle(b: ProgramBuilder, out: TensorView, self: TensorView, groups: int) -> None:
    """Channels [groups, C ÷ groups] in the order [C ÷ groups, groups]"""
    each_group = self.sizes[1] // groups
    source = self.split(1, (groups, each_group))
    order = [0, 2, 1, *range(3, source.rank)]
    b.copy(source.permuted(order), out.split(1, (each_group, groups)))


def _windows(
    image: TensorView,
    counts: tuple[int, ...],
    kernel: tuple[int, ...],
    dilation: tuple[int, ...],
    stride: tuple[int, ...],
) -> TensorView:
    """[…, C, kernel, kernel, positions, positions] of […, C, H, W], overlapping."""
    rank = image.rank
    for at, (count, step, size, apart) in enumerate(
        zip(counts, stride, kernel, dilation, strict=True)
    ):
        image = image.windows(rank - 2 + at, count, step, size, apart)
    return image.permuted([*range(rank - 2), rank, rank + 1, rank - 2, rank - 1])


def _counts(
    size: tuple[int, ...],
    kernel: tuple[int, ...],
    dilation: tuple[int, ...],
    stride: tuple[int, ...],
) -> tuple[int, ...]:
    """Positions of the windows in a padded image."""
    lines = zip(size, kernel, dilation, stride, strict=True)
    return tuple((n - dilation * (k - 1) - 1) // step + 1 for n, k, dilation, step in lines)


@TABLE.op("im2col")
def im2col(
    b: ProgramBuilder,
    out: TensorView,
    self: TensorView,
    kernel_size: tuple[int, ...],
    dilation: tuple[int, ...],
    padding: tuple[int, ...],
    stride: tuple[int, ...],
) -> None:
    """[…, C, H, W] as windows […, C·kernel, positions]"""
    kernel, dilation, stride = each(kernel_size, 2), each(dilation, 2), each(stride, 2)
    image = bordered(b, self, each(padding, 2))
    counts = _counts(image.sizes[-2:], kernel, dilation, stride)
    source = _windows(image, counts, kernel, dilation, stride)
    columns = out.split(-1, counts).split(-3, (self.sizes[-3], *kernel))
    b.copy(source, columns)


@TABLE.op("col2im")
def col2im(
    b: ProgramBuilder,
    out: TensorView,
    self: TensorView,
    output_size: tuple[int, ...],
    kernel_size: tuple[int, ...],
    dilation: tuple[int, ...],
    padding: tuple[int, ...],
    stride: tuple[int, ...],
) -> None:
    """Windows […, C·kernel, positions] added up to […, C, H, W]"""
    require_floats(b, self)
    kernel, dilation, stride = each(kernel_size, 2), each(dilation, 2), each(stride, 2)
    padding = each(padding, 2)
    whole = tuple(size + 2 * pad for size, pad in zip(out.sizes[-2:], padding, strict=True))
    counts = _counts(whole, kernel, dilation, stride)
    columns = self.split(-1, counts).split(-3, (self.sizes[-2] // prod(kernel), *kernel))
    add_windows(b, columns, out, dilation, padding, stride)
