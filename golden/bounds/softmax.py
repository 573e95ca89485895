# SPDX-License-Identifier: Apache-2.0
"""softmax and log_softmax over one dimension.

With d = x − max, p = exp(d)/Σ, all true values: the difference has one rounding, an absolute
error u·|d| in the exponent, so a relative one of its exponential; exp has 2 ULP, 4u (for 16-bit
results another budget). The quotient, or product with the sum's reciprocal: 3u. With the errors
A of the numerator and B of the sum of positive terms

    |p̂ − p| ≤ p · (A + B) ÷ (1 − B),  A = u·|d| + 4u + 3u,  B = Σ_j p_j·(u·|d_j| + 4u) + S

and (A + B)² for products of errors. S = Σ_j p_j·n_j·u, for a term passes the roundings of its lane
from its place on: n_j = ⌈K/16⌉ − ⌊j/16⌋ and those of the tree; torch's S is γ_n, for any order.

Exponentials below the normal range lose at most 2^-149 each. log_softmax is d − log Σ: u·|d|, the
sum's relative error as an absolute one, 2 ULP of the logarithm, and the last rounding.
_safe_softmax of a row of nothing but −∞ is 0.

torch does the same with exponentials of its own (4 ULP) and any order; along dimensions other
than the last it rounds what is on the way to 16-bit types.
"""

from __future__ import annotations

import numpy as np
import torch

from driver.isa.micro import REDUCTION_LANES
from golden.bounds.budgets import exponential
from golden.bounds.expectation import (
    TINY,
    Expectation,
    Rule,
    Subject,
    U,
    gamma,
    is_short,
    near,
    unit,
)
from golden.bounds.reductions import chain_roundings
from golden.calls import base_name
from golden.formats import Floats
from golden.tensors import values_of

_TORCH_EXP = 8 * U
_LEAST_REST = 2.0**-20
"""Of 1 − B: then nothing is known."""


def _parts(subject: Subject) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, int]:
    """(d, p, log Σ, dim) in float64."""
    x, dim = subject.call["self"].double(), subject.call["dim"]
    if x.dim() == 0:
        x, dim = x.reshape(1), 0
    peak = x.amax(dim, keepdim=True) if x.numel() else x
    d = x - peak
    total = d.exp().sum(dim, keepdim=True)
    p = d.exp() / total
    if base_name(subject.call.op) == "_safe_softmax":
        p = torch.where(peak == -torch.inf, 0.0, p)
    return d, p, total.log(), dim


def summing_by_lanes(p: torch.Tensor, dim: int) -> torch.Tensor:
    """S of the NPU, of weights p: it adds them up in lanes, and those in a tree."""
    count = p.shape[dim]
    lane = torch.arange(count, dtype=torch.float64).div(REDUCTION_LANES, rounding_mode="floor")
    steps = (chain_roundings(count) - lane).reshape([-1, *[1] * (p.dim() - 1 - dim % p.dim())])
    passed = (p.nan_to_num() * steps).sum(dim, keepdim=True)
    return passed * (U * (1 + gamma(chain_roundings(count))))


def _orders(
    p: torch.Tensor, dim: int, dtype: torch.dtype
) -> tuple[tuple[torch.Tensor, float], tuple[torch.Tensor, float]]:
    """S, and the error of e^x: the NPU's, and torch's."""
    own = summing_by_lanes(p, dim)
    any_order = torch.full_like(own, gamma(p.shape[dim] + 1))
    return (own, exponential(dtype)), (any_order, _TORCH_EXP)


def _relative_error(
    d: torch.Tensor, p: torch.Tensor, dim: int, summing: torch.Tensor, exp: float
) -> torch.Tensor:
    """Relative error of each p, as derived above."""
    term = U * torch.where(d.isfinite(), d.abs(), 0.0) + exp
    below = (p.nan_to_num() * term).sum(dim, keepdim=True) + summing
    return of_quotient(term, below)


def of_quotient(above: torch.Tensor, below: torch.Tensor) -> torch.Tensor:
    """Relative error of e^d/Σ whose numerator and sum have these."""
    both = above + below + 3 * U
    return both * (1 + both) / (1 - below).clamp(min=_LEAST_REST)


def _softmax(subject: Subject) -> tuple[Expectation | None, ...]:
    answer = subject.answer()
    d, p, _, dim = _parts(subject)
    errors = [
        values_of(p.nan_to_num() * _relative_error(d, p, dim, summing, exp)) + 2 * TINY
        for summing, exp in _orders(p, dim, answer.dtype)
    ]
    if is_short(answer.dtype):
        errors[1] = errors[1] + 3 * unit(answer.dtype) * values_of(p.nan_to_num()) + 2.0**-23
    return (near(answer.dtype, *_shaped(answer, values_of(p), *errors)),)


def _log_softmax(subject: Subject) -> tuple[Expectation | None, ...]:
    answer = subject.answer()
    d, p, log_sum, dim = _parts(subject)
    y = d - log_sum
    size = torch.where(d.isfinite(), d.abs() + y.abs(), 0.0) + log_sum.abs().nan_to_num()
    errors = []
    for summing, exp in _orders(p, dim, answer.dtype):
        term = U * torch.where(d.isfinite(), d.abs(), 0.0) + exp
        summed = (p * term).sum(dim, keepdim=True).nan_to_num() + summing
        errors.append(values_of(2 * summed + 4 * U * size) + TINY)
    if is_short(answer.dtype):
        errors[1] = errors[1] + 2 * unit(answer.dtype) * (values_of(size) + 1)
    return (near(answer.dtype, *_shaped(answer, values_of(y), *errors)),)


def _shaped(answer: torch.Tensor, *arrays: Floats) -> tuple[Floats, ...]:
    return tuple(np.reshape(array, tuple(answer.shape)) for array in arrays)


RULES: dict[str, Rule] = {
    **dict.fromkeys(("_softmax", "softmax", "_safe_softmax"), _softmax),
    **dict.fromkeys(("_log_softmax", "log_softmax"), _log_softmax),
}
