# SPDX-License-Identifier: Apache-2.0
"""Gradients of convolution: each is a sum of products, and S, the sum of their magnitudes, the same
op on magnitudes.

*Input*: O ÷ groups products in one chain for each of the K places of the kernel, then a sum of the
places: an addend passes at most O ÷ groups + K roundings. Of a transposed convolution one chain
over both, of K·O ÷ groups. *Weights*: one chain over all N images and P positions, N·P roundings;
where windows are laid out in parts, the chain goes on from the sum so far, in fp32. *Bias*: the sum
of golden.bounds.reductions over N·P. So each is within γ_{n+3}·S before the rounding to its type.
Where it is one chain, it is also within the bound of golden.bounds.chains, which is sharper; where
it is one for each place, within that of golden.bounds.overlapping.

torch adds in any order, in 16 bits image by image (weights) and place by place (input), so it
rounds N or K times more to that type; its 16-bit kernels take subnormal operands as 0.
Like golden.bounds.products, nothing is claimed of torch where the truth is not finite.
"""

from __future__ import annotations

from math import prod

import numpy as np
import torch

from golden.bounds.chains import Sums, add_products
from golden.bounds.convolution import chain_of_windows, not_finite_in_bf16
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
from golden.bounds.overlapping import overlapping_error
from golden.bounds.products import largest
from golden.bounds.reductions import finite, roundings
from golden.bounds.windows import windows
from golden.calls import OpCall, truths
from golden.formats import Floats
from golden.tensors import values_of


def _counts(call: OpCall) -> tuple[tuple[int, int, int], ...]:
    """Per gradient: the NPU's roundings, the terms, and how often torch rounds to 16 bits."""
    weight, transposed = call["weight"], call["transposed"]
    places = prod(weight.shape[2:])
    grad = call["grad_output"]
    depth = weight.shape[1] if transposed else weight.shape[0] // call["groups"]
    images, spatial = grad.shape[0], prod(grad.shape[2:])
    positions = prod(call["input"].shape[2:]) if transposed else spatial
    return (
        (depth * places if transposed else depth + places, depth * places, places),
        (images * positions, images * positions, images),
        (roundings(images, *grad.shape[2:]), images * spatial, 1),
    )


def _convolution(subject: Subject) -> tuple[Expectation | None, ...]:
    call = subject.call
    positive = {name: finite(call[name]).abs() for name in ("grad_output", "input", "weight")}
    sizes = truths(call, **positive)
    found: list[Expectation | None] = []
    for at, (answer, counts) in enumerate(zip(subject.answers, _counts(call), strict=True)):
        magnitude = sizes[at]
        if answer is None or magnitude is None:
            found.append(None)
            continue
        own, terms, stored = counts
        size, short = values_of(magnitude), is_short(answer.dtype)
        npu = gamma(own + 3) * size + TINY * (terms + 1)
        chain = _CHAINS[at](call, answer) if answer.numel() else None
        npu = npu if chain is None else np.minimum(npu, chain)
        other = gamma(2 * terms + 3) * size + (terms + 1) * (TINY + FLUSH)
        if short:
            other = other + (stored + 2) * (unit(answer.dtype) * size + FLUSH + least(answer.dtype))
            other = other + (terms + 1) * FLUSH * largest(positive)
        made = near(
            answer.dtype,
            true_of(subject, at),
            npu,
            other,
            peak=size,
            torch_peak=size if short else 0.0,
        )
        found.append(torch_open(made, ~np.isfinite(made.true) | not_finite_in_bf16(call)))
    return tuple(found)


def _input_chain(call: OpCall, answer: torch.Tensor) -> Floats | None:
    """A convolution of the gradient, transposed the other way than the call is."""
    found = chain_of_windows if call["transposed"] else overlapping_error
    return found(call, call["grad_output"], answer, None)


def _weight_chain(call: OpCall, answer: torch.Tensor) -> Floats | None:
    """One chain over images and positions, of the gradient times the input's windows; a transposed
    convolution has them exchanged."""
    image, other = call["input"], call["grad_output"]
    if call["transposed"]:
        image, other = other, image
    if image.dim() != answer.dim():
        return None
    groups, row = call["groups"], answer[0].numel()
    sums, terms = Sums.starting(np.zeros((groups, len(answer) // groups, row))), 0
    parts = windows(call, image, answer.shape[2:], other.shape[2:])
    if parts is None or not other.numel():
        return None
    for part in parts:
        its, added = finite(other[part.images, :, part.lines]), part.matrix.shape[1]
        by_group = its.reshape(len(its), groups, -1, added // len(its))
        a = by_group.permute(1, 2, 0, 3).reshape(groups, -1, added)
        terms += added
        add_products(sums, a.numpy(), part.matrix.numpy())
    return np.asarray(sums.chain_error(terms).reshape(answer.shape))


def _no_chain(call: OpCall, answer: torch.Tensor) -> None:
    """The bias: lanes and a tree."""


_CHAINS = (_input_chain, _weight_chain, _no_chain)
"""Per gradient: the NPU's error by its order, where that is sharper."""

RULES: dict[str, Rule] = {"convolution_backward": _convolution}
