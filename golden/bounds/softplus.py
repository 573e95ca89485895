# SPDX-License-Identifier: Apache-2.0
"""softplus: log(1 + e^a) ÷ beta with a = beta·x, or x where a is above the threshold.

a has one rounding unless beta is a power of two. With s(a) = log(1 + e^a), s′ = σ(a), an error of
u·|a| in a is one of u·|a|·σ(a)/s(a) in s, relatively: up to u·|a| far below zero, u far above. The
function has 2 ULP, 4u, and the quotient one rounding. Where a is within u·|a| of the threshold
either branch is right; they differ by log(1 + e^−a) ÷ beta.
"""

from __future__ import annotations

from math import frexp

import numpy as np
import torch

from golden.bounds.elementwise import true_of
from golden.bounds.expectation import (
    FLUSH,
    TINY,
    Expectation,
    Rule,
    Subject,
    U,
    is_short,
    near,
    unit,
)
from golden.bounds.reductions import finite
from golden.tensors import values_of

_TORCH = 10 * U
"""exp and log1p of torch, together."""


def _softplus(subject: Subject) -> tuple[Expectation | None, ...]:
    call, dtype = subject.call, subject.answer().dtype
    beta, threshold = (float(np.float32(call[name])) for name in ("beta", "threshold"))
    true = true_of(subject)
    rounded = 0.0 if abs(frexp(beta)[0]) == 0.5 else U
    a = beta * finite(call["self"])
    soft = torch.logaddexp(a, torch.zeros_like(a))
    steep = values_of((a.abs() * torch.sigmoid(a) / soft).nan_to_num(nan=0.0, posinf=0.0))
    steep = np.where(values_of(a) < -700, np.abs(values_of(a)), steep)
    size = np.abs(np.where(np.isfinite(true), true, 0.0))
    quotient = rounded
    inverse = 1 / abs(beta) if beta else 0.0  # without beta the result is infinite
    npu = size * (rounded * steep * (1 + 4 * U) + 4 * U + quotient)
    close = np.abs(values_of(a) - threshold) <= 2 * rounded * np.abs(values_of(a))
    jump = np.where(close, values_of(torch.nn.functional.softplus(-a)) * inverse, 0.0)
    npu = npu + jump + 2 * TINY * (1 + inverse)
    other = npu + size * _TORCH + 2 * FLUSH * (1 + inverse)
    if is_short(dtype):
        other = other + unit(dtype) * size
    return (near(dtype, true, npu, other),)


RULES: dict[str, Rule] = {"softplus": _softplus}
