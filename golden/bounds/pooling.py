# SPDX-License-Identifier: Apache-2.0
"""Pooling. A maximum is exact; an average is a sum of at most `kernel` terms and a quotient, so
within γ_{n+2} of the average of the magnitudes, which is the same op on them."""

from __future__ import annotations

from math import ceil, prod

import numpy as np

from golden.bounds.elementwise import true_of
from golden.bounds.exact import equal
from golden.bounds.expectation import TINY, Expectation, Rule, Subject, gamma, is_short, near, unit
from golden.bounds.reductions import finite
from golden.calls import OpCall, base_name, truths
from golden.tensors import values_of


def _window(call: OpCall) -> int:
    """The largest number of elements that a window has."""
    name = base_name(call.op)
    dims = 3 if name.endswith("3d") else 2
    if "kernel_size" in call.arguments:
        sizes = call["kernel_size"]
        return prod(sizes) if len(sizes) == dims else int(sizes[0]) ** dims
    inputs, outputs = call["self"].shape[-dims:], call["output_size"]
    return prod(ceil(size / max(out, 1)) + 1 for size, out in zip(inputs, outputs, strict=True))


def _average(subject: Subject) -> tuple[Expectation | None, ...]:
    call, dtype = subject.call, subject.answer().dtype
    (magnitudes,) = truths(call, self=finite(call["self"]).abs())
    assert magnitudes is not None
    size = np.abs(values_of(magnitudes))  # a divisor may be negative
    count = max(_window(call), abs(call.arguments.get("divisor_override") or 0))
    error = gamma(_window(call) + 4) * size + TINY
    if not is_short(dtype):
        return (near(dtype, true_of(subject), error, peak=size * count),)
    volumes = base_name(call.op).endswith("3d")  # there torch adds in the 16-bit type
    other = error + (_window(call) + 3 if volumes else 2) * unit(dtype) * size
    short = size * count if volumes else 0.0
    return (near(dtype, true_of(subject), error, other, peak=size * count, torch_peak=short),)


RULES: dict[str, Rule] = {
    **{f"max_pool{dims}d": equal for dims in (2, 3)},
    **{f"max_pool{dims}d_with_indices": equal for dims in (2, 3)},
    **{f"adaptive_max_pool{dims}d": equal for dims in (2, 3)},
    **{f"avg_pool{dims}d": _average for dims in (2, 3)},
    **{f"_adaptive_avg_pool{dims}d": _average for dims in (2, 3)},
    **{f"adaptive_avg_pool{dims}d": _average for dims in (2, 3)},
}
