# SPDX-License-Identifier: Apache-2.0
"""The windows of a convolution as a matrix, for bounds that follow the order of its products."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import torch

from golden.bounds.reductions import finite
from golden.calls import OpCall

_MOST_WINDOWS = 1 << 25
"""Elements of all windows, beyond which the order of products is not looked at."""


def images_at_once(call: OpCall, window_elements: int) -> int:
    """Of how many images, one at least, the windows fit in memory; `window_elements`: those of one
    image and one group."""
    return int(max(1, _MOST_WINDOWS // max(1, window_elements * call["groups"])))


def windows(
    call: OpCall, image: torch.Tensor, kernel: Sequence[int], places: Sequence[int]
) -> torch.Tensor | None:
    """Those of image [N, C, spatial…] within its border, [groups, N·places, C ÷ groups · kernel] in
    float64, where `kernel` and `places` are sizes per spatial dimension.

    None for a border that is named ("same"), for one image without a batch, and where they take too
    much memory.
    """
    dims, padding = len(kernel), call["padding"]
    if image.dim() != dims + 2 or isinstance(padding, str):
        return None
    stride, dilation, pads = (
        [*v] * (dims // len(v)) for v in (call["stride"], call["dilation"], padding)
    )
    groups, images = call["groups"], image.shape[0]
    channels = image.shape[1] // groups
    if image.shape[0] * groups * prod(places) * channels * prod(kernel) > _MOST_WINDOWS:
        return None
    border = [pad for pad in reversed(pads) for _ in range(2)]
    x = torch.nn.functional.pad(finite(image), border)
    step, channel, *steps = x.stride()
    sizes = (groups, images, *places, channels, *kernel)
    walk = (
        *(channel * channels, step),
        *(step * s for step, s in zip(steps, stride, strict=True)),
        channel,
        *(step * d for step, d in zip(steps, dilation, strict=True)),
    )
    return x.as_strided(sizes, walk).reshape(groups, -1, channels * prod(kernel))
