# SPDX-License-Identifier: Apache-2.0
"""Convolutions: sums of products as golden.bounds.products has them.

The NPU's order is that of golden.bounds.chains: one chain over channels and kernel, which starts
from the bias. A place in the border is a product of 0. So the bits of an element are specified, as
those of a matrix product are. torch may multiply an infinity by the zeros
of a border of its own, or leave such a product out.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
import torch

from driver.runtime.torch_types import NPU_TYPES
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
from golden.bounds.overlapping import overlapping_error
from golden.bounds.products import largest, summed
from golden.bounds.reductions import finite
from golden.bounds.specified import SpecifiedBits
from golden.bounds.windows import steps_of, windows, with_border
from golden.calls import OpCall, truths
from golden.formats import Floats
from golden.softfloat import chain
from golden.tensors import tensor_bits, values_of


def _terms(call: OpCall) -> int:
    return prod(call["weight"].shape[1:])


def _convolution(subject: Subject) -> tuple[Expectation | None, ...]:
    call = subject.call
    if call.arguments.get("transposed"):
        return _transposed(subject)
    (found,) = summed(_terms, _chain)(subject)
    assert found is not None
    found = torch_open(found, np.full(found.true.shape, not_finite_in_bf16(call)))
    return (replace(found, specified=_specified(call, subject.answer())),)


def _specified(call: OpCall, answer: torch.Tensor) -> SpecifiedBits | None:
    """Each element's chain. None for a border that is named, one image without a batch, and types
    that are converted."""
    x, weight, bias = call["input"], call["weight"], call["bias"]
    types = {tensor.dtype for tensor in (x, weight, bias, answer) if tensor is not None}
    dims = weight.dim() - 2
    if isinstance(call["padding"], str) or x.dim() != dims + 2 or len(types) > 1:
        return None
    groups, dtype = call["groups"], NPU_TYPES[answer.dtype]
    stride, dilation, padding = steps_of(call, dims)
    channels = weight.shape[1]

    def bits(flat: int) -> int:
        number, filter_, *place = (int(i) for i in np.unravel_index(flat, answer.shape))
        first = filter_ // (weight.shape[0] // groups) * channels
        walk = zip(place, stride, dilation, weight.shape[2:], strict=True)
        window = [slice(at * s, at * s + (size - 1) * d + 1, d) for at, s, d, size in walk]
        image = with_border(x[number, first : first + channels], padding)
        a, b = (
            [int(word) for word in tensor_bits(factors.reshape(-1))]
            for factors in (image[(slice(None), *window)], weight[filter_])
        )
        start = None if bias is None else int(tensor_bits(bias)[filter_])
        return chain(a, b, start, dtype, dtype)

    return SpecifiedBits(answer.numel(), weight[0].numel(), dtype, bits)


def _transposed(subject: Subject) -> tuple[Expectation | None, ...]:
    """C ÷ groups products per place of the kernel in one chain, then a sum of the K places:
    golden.bounds.overlapping. torch in any order, and in 16 bits from place to place."""
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
    own = overlapping_error(call, call["input"], subject.answer(), call["bias"])
    npu = npu if own is None else np.minimum(npu, own)
    other = 2 * gamma(terms + 3) * size + terms * (TINY + FLUSH)
    short = is_short(dtype)
    if short:
        other = other + (places + 2) * (unit(dtype) * size + FLUSH + least(dtype))
        other = other + terms * FLUSH * largest(positive)
    made = near(dtype, true_of(subject), npu, other, peak=size, torch_peak=size if short else 0.0)
    return (torch_open(made, ~np.isfinite(made.true) | not_finite_in_bf16(call)),)


def not_finite_in_bf16(call: OpCall) -> bool:
    """Whether there is an infinity or a NaN that torch's kernels for bf16, which take elements in
    pairs and pad with what is there, may multiply by 0 in places where it has no part."""
    operands = call.tensors()
    return operands[0].dtype is torch.bfloat16 and not all(x.isfinite().all() for x in operands)


def _chain(call: OpCall, answer: torch.Tensor) -> Floats | None:
    """The NPU's error by its order; None where windows() has none."""
    return chain_of_windows(call, call["input"], answer, call["bias"])


def chain_of_windows(
    call: OpCall, image: torch.Tensor, answer: torch.Tensor, bias: torch.Tensor | None
) -> Floats | None:
    """Error of the sums over C ÷ groups and kernel of the weights [O, C ÷ groups, kernel…] times
    the windows of image [N, C, …], in the shape of the answer [N, O, places…]."""
    weight = finite(call["weight"])
    if not answer.numel() or not weight.numel():
        return None
    parts = windows(call, image, weight.shape[2:], answer.shape[2:])
    if parts is None:
        return None
    groups, terms = call["groups"], weight[0].numel()
    b = weight.reshape(groups, -1, terms).mT
    c = None if bias is None else finite(bias).reshape(groups, 1, -1)
    error = np.zeros(answer.shape)
    for part in parts:
        start = None
        if c is not None:
            start = np.broadcast_to(c.numpy(), (groups, part.matrix.shape[1], b.shape[2]))
        found = partial_sums(part.matrix.numpy(), b.numpy(), start).chain_error(terms)
        own = error[part.images, :, part.lines]
        apart = found.reshape(groups, len(own), -1, b.shape[2])
        own[...] = apart.transpose(1, 0, 3, 2).reshape(own.shape)
    return error


RULES: dict[str, Rule] = dict.fromkeys(("convolution", "conv2d", "conv1d"), _convolution)
