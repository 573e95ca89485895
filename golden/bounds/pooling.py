# SPDX-License-Identifier: Apache-2.0
"""Pooling. A maximum is exact; an average is a sum of at most `kernel` terms and a quotient, so
within γ_{n+2} of the average of the magnitudes, which is the same op on them."""

from __future__ import annotations

from math import ceil, prod

import numpy as np

from golden.bounds.elementwise import true_of
from golden.bounds.exact import equal
from golden.bounds.expectation import TINY, Expectation, Rule, Subject, is_short, near, unit
from golden.bounds.reductions import finite
from golden.calls import OpCall, truths, values_of
from golden.tolerance import gamma


def _window(call: OpCall) -> int:
    if "kernel_size" in call.arguments:
        sizes = call["kernel_size"]
        return prod(sizes) if len(sizes) == 2 else sizes[0] ** 2
    inputs, outputs = call["self"].shape[-2:], call["output_size"]
    return prod(ceil(size / max(out, 1)) + 1 for size, out in zip(inputs, outputs, strict=True))


def _average(subject: Subject) -> tuple[Expectation | None, ...]:
    call, dtype = subject.call, subject.answer().dtype
    (magnitudes,) = truths(call, self=finite(call["self"]).abs())
    assert magnitudes is not None
    size = np.abs(values_of(magnitudes))  # a divisor may be negative
    count = max(_window(call), abs(call.arguments.get("divisor_override") or 0))
    error = gamma(_window(call) + 4) * size + TINY
    other = error + (2 * unit(dtype) * size if is_short(dtype) else 0.0)
    return (near(dtype, true_of(subject), error, other, peak=size * count),)


RULES: dict[str, Rule] = {
    "max_pool2d_with_indices": equal,
    "max_pool2d": equal,
    **dict.fromkeys(("avg_pool2d", "_adaptive_avg_pool2d", "adaptive_avg_pool2d"), _average),
}
