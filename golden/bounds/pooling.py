# SPDX-License-Identifier: Apache-2.0
"""Pooling. A maximum is exact; an average is a sum of at most `kernel` terms and a quotient, so
within γ_{n+2} of the average of the magnitudes, which is the same op on them. The NPU adds up one
dimension after the other: n is the sum of the kernel's sizes, not their product; of adaptive
windows, the roundings of a sum over each.

The gradient of an average: each position gets g ÷ count of the windows that it lies in, at most n =
Π ⌈size ÷ stride⌉ of them; adaptive windows overlap by at most two in a dimension. The quotient and
the sum, dimension by dimension, are n + 2 roundings at most. torch adds in the result's type."""

from __future__ import annotations

from math import ceil, prod

import numpy as np

from golden.bounds.elementwise import true_of
from golden.bounds.exact import equal
from golden.bounds.expectation import (
    TINY,
    Expectation,
    Rule,
    Subject,
    gamma,
    is_short,
    least,
    near,
    unit,
)
from golden.bounds.reductions import finite, roundings
from golden.calls import OpCall, base_name, truths
from golden.tensors import values_of

_FEW = 16
"""Adaptive windows of up to so many elements may be added up one by one."""


def _window(call: OpCall) -> list[int]:
    """The largest sizes that a window has."""
    dims = 3 if base_name(call.op).endswith("3d") else 2
    if "kernel_size" in call.arguments:
        sizes = call["kernel_size"]
        return [*sizes] if len(sizes) == dims else [int(sizes[0])] * dims
    inputs, outputs = call["self"].shape[-dims:], call["output_size"]
    return [ceil(size / max(out, 1)) + 1 for size, out in zip(inputs, outputs, strict=True)]


def _npu_roundings(call: OpCall) -> int:
    """On the way of one element to the NPU's sum of its window."""
    sizes = _window(call)
    if "kernel_size" in call.arguments:
        return sum(sizes)
    return sum(max(min(size, _FEW), roundings(size)) for size in sizes)


def _average(subject: Subject) -> tuple[Expectation | None, ...]:
    call, dtype = subject.call, subject.answer().dtype
    (magnitudes,) = truths(call, self=finite(call["self"]).abs())
    assert magnitudes is not None
    size = np.abs(values_of(magnitudes))  # a divisor may be negative
    window = prod(_window(call))
    count = max(window, abs(call.arguments.get("divisor_override") or 0))
    npu = gamma(min(window, _npu_roundings(call)) + 2) * size + TINY
    error = gamma(window + 2) * size + TINY
    if not is_short(dtype):
        return (near(dtype, true_of(subject), npu, error, peak=size * count),)
    volumes = base_name(call.op).endswith("3d")  # there torch adds in the 16-bit type
    other = error + (window + 3 if volumes else 2) * unit(dtype) * size
    short = size * count if volumes else 0.0
    return (near(dtype, true_of(subject), npu, other, peak=size * count, torch_peak=short),)


def _overlap(call: OpCall) -> int:
    """The most windows that a position lies in."""
    dims = 3 if base_name(call.op).endswith("3d_backward") else 2
    if "kernel_size" not in call.arguments:
        return int(2**dims)
    kernel, stride = ([*call[name]] for name in ("kernel_size", "stride"))
    stride = stride or kernel
    sizes = zip(kernel * (dims // len(kernel)), stride * (dims // len(stride)), strict=True)
    return prod(ceil(size / step) for size, step in sizes)


def _gradient_of_average(subject: Subject) -> tuple[Expectation | None, ...]:
    call, dtype = subject.call, subject.answer().dtype
    (magnitudes,) = truths(call, grad_output=finite(call["grad_output"]).abs())
    assert magnitudes is not None
    size, count = np.abs(values_of(magnitudes)), _overlap(call)
    error = gamma(count + 2) * size + (count + 1) * TINY
    if not is_short(dtype):
        return (near(dtype, true_of(subject), error, peak=size),)
    other = error + (count + 2) * (unit(dtype) * size + least(dtype))
    return (near(dtype, true_of(subject), error, other, peak=size, torch_peak=size),)


RULES: dict[str, Rule] = {
    **{f"max_pool{dims}d": equal for dims in (2, 3)},
    **{f"max_pool{dims}d_with_indices": equal for dims in (2, 3)},
    **{f"adaptive_max_pool{dims}d": equal for dims in (2, 3)},
    **{f"avg_pool{dims}d": _average for dims in (2, 3)},
    **{f"_adaptive_avg_pool{dims}d": _average for dims in (2, 3)},
    **{f"adaptive_avg_pool{dims}d": _average for dims in (2, 3)},
    **{f"avg_pool{dims}d_backward": _gradient_of_average for dims in (2, 3)},
    **{f"_adaptive_avg_pool{dims}d_backward": _gradient_of_average for dims in (2, 3)},
}
