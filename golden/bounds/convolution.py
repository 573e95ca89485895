# SPDX-License-Identifier: Apache-2.0
"""Convolutions: sums of products as golden.bounds.products has them.

Of lines and images the NPU's order is known: the chain of golden.bounds.chains over the channels
and the kernel's places, which starts from the bias. A place in the border is a product of 0. torch
may multiply an infinity by the zeros of a border of its own, or leave such a product out.
"""

from __future__ import annotations

from math import prod

import numpy as np
import torch

from golden.bounds.chains import partial_sums
from golden.bounds.elementwise import true_of
from golden.bounds.expectation import (
    FLUSH,
    TINY,
    Expectation,
    Rule,
    Subject,
    gamma,
    is_short,
    least,
    near,
    torch_open,
    unit,
)
from golden.bounds.products import summed
from golden.bounds.reductions import finite
from golden.calls import OpCall, truths
from golden.formats import Floats
from golden.tensors import values_of

_MOST_WINDOWS = 1 << 25
"""Elements of all windows, beyond which the order of products is not looked at."""


def _terms(call: OpCall) -> int:
    return prod(call["weight"].shape[1:])


def _convolution(subject: Subject) -> tuple[Expectation | None, ...]:
    transposed = subject.call.arguments.get("transposed")
    return (_transposed if transposed else summed(_terms, _chain))(subject)


def _transposed(subject: Subject) -> tuple[Expectation | None, ...]:
    """C ÷ groups products per place of the kernel in one chain, then a sum of the K places; torch
    in any order, and in 16 bits from place to place."""
    call, dtype = subject.call, subject.answer().dtype
    positive = {
        name: None if call[name] is None else finite(call[name]).abs()
        for name in ("input", "weight", "bias")
    }
    (magnitudes,) = truths(call, **positive)
    assert magnitudes is not None
    size, weight = values_of(magnitudes), call["weight"]
    depth, places = weight.shape[0] // call["groups"], prod(weight.shape[2:])
    terms = depth * places + 1
    npu = gamma(depth + places + 3) * size + TINY * terms
    other = 2 * gamma(terms + 3) * size + terms * (TINY + FLUSH)
    short = is_short(dtype)
    if short:
        other = other + (places + 2) * (unit(dtype) * size + FLUSH + least(dtype))
    made = near(dtype, true_of(subject), npu, other, peak=size, torch_peak=size if short else 0.0)
    return (torch_open(made, ~np.isfinite(made.true)),)


def _chain(call: OpCall, answer: torch.Tensor) -> Floats | None:
    """The NPU's error by its order; None for volumes, and for windows that take too much memory."""
    weight = finite(call["weight"])
    windows = _windows(call, answer) if answer.numel() and weight.numel() else None
    if windows is None:
        return None
    groups, images = windows.shape[0], answer.shape[0]
    terms = windows.shape[2]
    b = weight.reshape(groups, -1, terms).mT
    bias = call["bias"]
    c = None if bias is None else finite(bias).reshape(groups, 1, -1)
    shape = (groups, windows.shape[1], b.shape[2])
    start = None if c is None else np.broadcast_to(c.numpy(), shape)
    error = partial_sums(windows.numpy(), b.numpy(), start).chain_error(terms)
    apart = error.reshape(groups, images, -1, shape[2])
    return np.asarray(apart.transpose(1, 0, 3, 2).reshape(answer.shape))


def _windows(call: OpCall, answer: torch.Tensor) -> torch.Tensor | None:
    """The input's windows, [groups, images · places, channels · kernel], in float64."""
    x, weight, padding = finite(call["input"]), call["weight"], call["padding"]
    dims = weight.dim() - 2
    if dims > _MOST_DIMS or x.dim() != dims + 2 or isinstance(padding, str):
        return None
    stride, dilation, pads = (
        [*v] * (dims // len(v)) for v in (call["stride"], call["dilation"], padding)
    )
    groups, channels, kernel = call["groups"], weight.shape[1], weight.shape[2:]
    places = answer.shape[2:]
    if x.shape[0] * groups * prod(places) * channels * prod(kernel) > _MOST_WINDOWS:
        return None
    x = torch.nn.functional.pad(x, [pad for pad in reversed(pads) for _ in range(2)])
    image, channel, *steps = x.stride()
    sizes = (groups, x.shape[0], *places, channels, *kernel)
    walk = (
        *(channel * channels, image),
        *(step * s for step, s in zip(steps, stride, strict=True)),
        channel,
        *(step * d for step, d in zip(steps, dilation, strict=True)),
    )
    return x.as_strided(sizes, walk).reshape(groups, -1, channels * prod(kernel))


_MOST_DIMS = 2
RULES: dict[str, Rule] = dict.fromkeys(("convolution", "conv2d", "conv1d"), _convolution)
