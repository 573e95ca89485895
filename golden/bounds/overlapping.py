# SPDX-License-Identifier: Apache-2.0
"""The error of transposed convolutions, and of gradients of inputs, which are the same.

Each place of the kernel has a product P of its own with each place of the image, one chain over the
C ÷ groups channels with the error e of golden.bounds.chains; then the K products that fall on an
element are added up, and the bias b: an addend passes at most K + 1 roundings. With Σ over the
places that fall there:

    Σ e + γ_{K+1}·(Σ (|P| + e) + |b|)

P is a sum with signs: where its terms cancel, that is less than Σ|x·w|.
"""

from __future__ import annotations

from math import prod

import numpy as np
import torch

from golden.bounds.chains import partial_sums
from golden.bounds.expectation import TINY, gamma
from golden.bounds.reductions import finite
from golden.bounds.windows import steps_of
from golden.calls import OpCall
from golden.formats import Floats
from golden.tensors import values_of

_MOST_AT_ONCE = 1 << 24
"""Products of one image that are in memory at a time."""
_LINE, _IMAGE = 1, 2


def overlapping_error(
    call: OpCall, image: torch.Tensor, answer: torch.Tensor, bias: torch.Tensor | None
) -> Floats | None:
    """Of image [N, C, …] and the call's weights [C, O ÷ groups, kernel…]; None for volumes, images
    without a batch, very large ones, and more room at the end than a step."""
    weight, groups = finite(call["weight"]), call["groups"]
    dims, kernel = weight.dim() - 2, tuple(weight.shape[2:])
    places, positions, filters = prod(kernel), prod(image.shape[2:]), groups * weight.shape[1]
    if dims not in (_LINE, _IMAGE) or image.dim() != dims + 2 or not answer.numel():
        return None
    if isinstance(call["padding"], str) or filters * places * positions > _MOST_AT_ONCE:
        return None
    flat = [1] * (_IMAGE - dims)
    stride, dilation, padding = steps_of(call, dims)
    fold = torch.nn.Fold(
        (*flat, *answer.shape[2:]),
        (*flat, *kernel),
        (*flat, *dilation),
        (*(0 for _ in flat), *padding),
        (*flat, *stride),
    )
    if prod(_blocks(fold)) != positions:
        return None
    depth = weight.shape[0] // groups
    b = values_of(weight.reshape(groups, depth, -1))
    size = 0.0 if bias is None else values_of(finite(bias).abs()).reshape(-1, *[1] * dims)
    found = []
    for one in finite(image):
        sums = partial_sums(values_of(one.reshape(groups, depth, positions).mT), b, None)
        error = sums.chain_error(depth)
        both = (
            torch.from_numpy(x).mT.reshape(filters * places, positions)
            for x in (error, np.abs(sums.total) + error)
        )
        own, reach = (values_of(fold(x)).reshape(answer.shape[1:]) for x in both)
        found.append(own + gamma(places + 1) * (reach + size) + (places + 1) * TINY)
    return np.stack(found)


def _blocks(fold: torch.nn.Fold) -> list[int]:
    """How many windows fit in along each dimension."""
    given = (fold.output_size, fold.kernel_size, fold.dilation, fold.padding, fold.stride)
    walk = zip(*given, strict=True)  # type: ignore[arg-type]
    return [(size + 2 * pad - step * (k - 1) - 1) // s + 1 for size, k, step, pad, s in walk]
