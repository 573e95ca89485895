# SPDX-License-Identifier: Apache-2.0
"""The windows of a convolution as a matrix, for bounds that follow the order of its products."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

import torch

from golden.bounds.reductions import finite
from golden.calls import OpCall

_MOST_AT_ONCE = 1 << 25
"""Elements of windows that are in memory at a time; those of one line of places may be more."""


@dataclass(frozen=True)
class WindowPart:
    """The windows of some images at some lines of places."""

    images: slice
    lines: slice
    """Along the first dimension of places; all of them where there are several images."""
    matrix: torch.Tensor
    """[groups, images · places, C ÷ groups · kernel] in float64."""


def steps_of(call: OpCall, dims: int) -> tuple[list[int], list[int], list[int]]:
    """Stride, dilation and padding of a convolution, one of each per spatial dimension."""
    stride, dilation, padding = (
        [*given] * (dims // len(given)) for given in (call[name] for name in _STEPS)
    )
    return stride, dilation, padding


_STEPS = ("stride", "dilation", "padding")


def with_border(image: torch.Tensor, padding: Sequence[int]) -> torch.Tensor:
    """The image with zeros before and behind its innermost dimensions."""
    return torch.nn.functional.pad(image, [pad for pad in reversed(padding) for _ in range(2)])


def windows(
    call: OpCall, image: torch.Tensor, kernel: Sequence[int], places: Sequence[int]
) -> Iterator[WindowPart] | None:
    """Those of image [N, C, spatial…] within its border, in row-major order of image and place,
    where `kernel` and `places` are sizes per spatial dimension.

    None for a border that is named ("same") and for one image without a batch.
    """
    dims = len(kernel)
    if image.dim() != dims + 2 or isinstance(call["padding"], str):
        return None
    return _parts(call, image, kernel, places)


def _parts(
    call: OpCall, image: torch.Tensor, kernel: Sequence[int], places: Sequence[int]
) -> Iterator[WindowPart]:
    stride, dilation, padding = steps_of(call, len(kernel))
    groups = call["groups"]
    channels = image.shape[1] // groups
    one_line = groups * prod(places[1:]) * channels * prod(kernel)
    lines = max(1, min(places[0], _MOST_AT_ONCE // max(1, one_line)))
    images = max(1, _MOST_AT_ONCE // max(1, one_line * places[0]))
    for first in range(0, image.shape[0], images):
        some = slice(first, min(first + images, image.shape[0]))
        x = with_border(finite(image[some]), padding)
        step, channel, *steps = x.stride()
        for line in range(0, places[0], lines):
            rows = slice(line, min(line + lines, places[0]))
            sizes = (groups, len(x), rows.stop - line, *places[1:], channels, *kernel)
            walk = (
                *(channel * channels, step),
                *(step * s for step, s in zip(steps, stride, strict=True)),
                channel,
                *(step * d for step, d in zip(steps, dilation, strict=True)),
            )
            found = x.as_strided(sizes, walk, line * steps[0] * stride[0])
            yield WindowPart(some, rows, found.reshape(groups, -1, channels * prod(kernel)))
