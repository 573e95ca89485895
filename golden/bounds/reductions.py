# SPDX-License-Identifier: Apache-2.0
"""Sums over dimensions, and what is made of them.

With S = Σ|x| over the K elements of a sum, every order is within γ_n·S where n is the number of
roundings that an element passes (N. J. Higham, Accuracy and Stability of Numerical Algorithms,
2nd ed., section 4.2). The NPU's 16 lanes and their tree: at most ⌈K/16⌉ + 4, and a few more
(`_PASSES`) for each pass over dimensions that do not lie together. A dimension of more than
`LONGEST` elements is added up in parts of `PART`, then the parts. torch: any order, n = K.

*var.* With m̂ = m + δ the computed mean, Σ(x − m̂)² = V + K·δ², V the true sum of squares around
m. Each difference, its square and the sum are n + 3 roundings of positive terms. So the result is
within γ_{n+6}·(V + Kδ²) + Kδ² of V before the division. The mean of a sum, Σx/K, has
|δ| ≤ γ_{n+2}·S/K = δ'. The NPU adds Σ(x − m̂')/K to that one, m̂': n + 4 roundings of differences
that sum up to at most Σ|x − m| + K·δ' ≤ √(KV) + K·δ', and one of the mean:
|δ| ≤ γ_{n+4}·(√(V/K) + δ') + u·|m|.

*mean* divides by K, another rounding. torch's 16-bit mean rounds the sum to 16 bits first.

*cumsum.* The j-th sum has at most j + 1 terms, in any order: γ_{j+1}·Σ_{i≤j}|x_i|.
"""

from __future__ import annotations

from math import ceil, prod

import numpy as np
import torch

from driver.isa.micro import REDUCTION_LANES
from golden.bounds.elementwise import true_of
from golden.bounds.exact import by_type
from golden.bounds.expectation import (
    SLACK,
    TINY,
    Expectation,
    Rule,
    Subject,
    U,
    gamma,
    is_short,
    least,
    near,
    unit,
)
from golden.calls import OpCall, widened
from golden.formats import Floats
from golden.tensors import values_of

LONGEST, PART = 8192, 1024
"""Elements that are one chain in each lane, and those of a part where there are more."""
_PASSES = 6
"""Roundings that a further pass over reduced dimensions adds: a tree of 4, a lane, the store."""


def chain_roundings(count: int) -> int:
    """How many roundings an element of a sum over `count` passes in one pass of the NPU."""
    return ceil(count / REDUCTION_LANES) + _PASSES


def roundings(*sizes: int) -> int:
    """The same of a sum over dimensions of these sizes, from the outermost to the innermost: those
    that lie together in memory are added up at once, the others one after the other, long ones in
    parts. The most of all ways in which neighbours may lie together."""
    most = [0] * (len(sizes) + 1)
    for first in reversed(range(len(sizes))):
        together = 1
        for last in range(first, len(sizes)):
            together *= sizes[last]
            most[first] = max(most[first], _of_one(together) + most[last + 1])
    return most[0] or chain_roundings(1)


def _of_one(count: int) -> int:
    """Of one dimension."""
    found = 0
    while count > LONGEST:
        found += chain_roundings(PART)
        count = ceil(count / PART)
    return found + chain_roundings(count)


def dims_of(call: OpCall) -> tuple[int, ...]:
    """The reduced dimensions, none of them negative."""
    rank = call["self"].dim()
    dim = call.arguments.get("dim")
    if dim is None or (not isinstance(dim, int) and not dim):
        return tuple(range(rank))
    listed = [dim] if isinstance(dim, int) else dim
    return tuple(d % max(rank, 1) for d in listed if rank)


def finite(tensor: torch.Tensor) -> torch.Tensor:
    """In float64; what is not finite counts as 0."""
    wide: torch.Tensor = widened(tensor).double()
    return torch.where(wide.isfinite(), wide, 0.0)


class _Rows:
    """The elements that each result is made of."""

    def __init__(self, subject: Subject) -> None:
        call = subject.call
        self.dims = dims_of(call)
        source = call["self"]
        self.count = prod(source.shape[d] for d in self.dims)
        self.values = finite(source)
        self.shape = tuple(subject.answer().shape)

    def total(self, values: torch.Tensor) -> Floats:
        """Sum over the reduced dimensions, in the shape of the result."""
        summed = values.sum(self.dims) if self.dims else values
        return values_of(summed).reshape(self.shape)

    @property
    def npu_roundings(self) -> int:
        return roundings(*(self.values.shape[d] for d in sorted(self.dims)))

    def centred(self) -> torch.Tensor:
        """Differences to the mean."""
        if not self.dims:
            return self.values - self.values
        return self.values - self.values.mean(self.dims, keepdim=True)


def _sum(subject: Subject) -> tuple[Expectation | None, ...]:
    rows, dtype = _Rows(subject), subject.answer().dtype
    absolute = rows.total(rows.values.abs())
    tiny = TINY * (rows.count + 1)
    npu = gamma(rows.npu_roundings) * absolute + tiny
    other = gamma(rows.count + 1) * absolute + tiny + _narrowed(subject, absolute, rows.count)
    return (near(dtype, true_of(subject), npu, other, peak=absolute),)


def _narrowed(subject: Subject, absolute: Floats, count: int) -> Floats | float:
    """What torch loses that converts the terms to a 16-bit type first; the NPU does not."""
    dtype = subject.answer().dtype
    if not is_short(dtype) or subject.call["self"].dtype is dtype:
        return 0.0
    return unit(dtype) * absolute + count * least(dtype)


def _mean(subject: Subject) -> tuple[Expectation | None, ...]:
    rows, dtype = _Rows(subject), subject.answer().dtype
    count = max(rows.count, 1)
    absolute = rows.total(rows.values.abs())
    npu = gamma(rows.npu_roundings + 2) * absolute / count + TINY
    other = gamma(rows.count + 3) * absolute / count + TINY
    if is_short(dtype):
        other = other + 2 * unit(dtype) * absolute / count
    true = true_of(subject)
    short_peak = absolute if is_short(dtype) else 0.0
    return (near(dtype, true, npu, other, peak=absolute, torch_peak=short_peak),)


def shift_of_sum(values: Floats, mean: Floats, count: int, n: int) -> Floats:
    """|δ| of a mean computed as Σx/K: `values` Σ|x|, n roundings."""
    return np.asarray(gamma(n + 2) * values / max(count, 1) + U * np.abs(mean) + TINY)


def shift_of_mean(values: Floats, spread: Floats, mean: Floats, count: int, n: int) -> Floats:
    """|δ| of the NPU's mean, to which that of the differences is added: `spread` Σ(x − m)²."""
    first = shift_of_sum(values, mean, count, n)
    rest = gamma(n + 4) * (np.sqrt(spread / max(count, 1)) + first)
    return np.asarray(rest + U * (1 + 4 * U) * np.abs(mean) + 2 * TINY)


def square_error(spread: Floats, shift: Floats, count: int, n: int) -> Floats:
    """Error of a computed Σ(x − m̂)²: `spread` the true sum, `shift` |δ|, n roundings."""
    drift = count * shift**2
    return np.asarray(gamma(n + 6) * (spread + drift) + drift + TINY * count)


def _variance(root: bool) -> Rule:
    def rule(subject: Subject) -> tuple[Expectation | None, ...]:
        rows, dtype = _Rows(subject), subject.answer().dtype
        absolute = rows.total(rows.values.abs())
        spread = rows.total(rows.centred() ** 2)
        mean = rows.total(rows.values) / max(rows.count, 1)
        divisor = max(rows.count - _correction(subject.call), 0)
        true = true_of(subject)
        errors = []
        own, other = rows.npu_roundings, rows.count + 2
        for n, shift in (
            (own, shift_of_mean(absolute, spread, mean, rows.count, own)),
            (other, shift_of_sum(absolute, mean, rows.count, other)),
        ):
            error = square_error(spread, shift, rows.count, n)
            with np.errstate(divide="ignore", invalid="ignore"):
                error = (error + 3 * U * spread) / divisor if divisor else np.zeros_like(error)
                if root:  # √(v + e) − √v ≤ e/√v, and ≤ √e
                    error = np.fmin(error / np.sqrt(spread / max(divisor, 1)), np.sqrt(error))
                    error = error + 2 * U * true
            errors.append(np.nan_to_num(error, nan=0.0))
        return (near(dtype, true, errors[0], errors[1], peak=spread + absolute),)

    return rule


def _correction(call: OpCall) -> float:
    given = call.arguments.get("correction")
    if given is None:
        given = 1.0 if call.arguments.get("unbiased", True) else 0.0
    return float(given)


def _var_mean(subject: Subject) -> tuple[Expectation | None, ...]:
    call = subject.call
    arguments = (call["self"], list(dims_of(call)), call["keepdim"])
    mean = Subject(OpCall("aten.mean.dim", arguments), subject.answers[1:])
    return (*_variance(root=False)(subject), *_mean(mean))


def _cumsum(subject: Subject) -> tuple[Expectation | None, ...]:
    call, dtype = subject.call, subject.answer().dtype
    true = true_of(subject)
    if call["self"].dim() == 0:
        return (near(dtype, true, 0.0),)
    absolute = finite(call["self"]).abs().cumsum(call["dim"])
    place = torch.ones_like(absolute).cumsum(call["dim"])
    # The NPU adds in passes, of elements 1, 2, 4, … apart; torch one after the other.
    npu, error = (
        count * U / (1 - count * U) * values_of(absolute) * (1 + SLACK)
        + TINY
        + SLACK * values_of(absolute)
        for count in (values_of(torch.log2(place).ceil() + 1), values_of(place))
    )
    npu = np.minimum(npu, error)
    other = error + _narrowed(subject, values_of(absolute), call["self"].shape[call["dim"]])
    return (near(dtype, true, npu, other, peak=values_of(absolute)),)


def _logsumexp(subject: Subject) -> tuple[Expectation | None, ...]:
    rows, dtype = _Rows(subject), subject.answer().dtype
    true = true_of(subject)
    size = values_of(rows.values.abs().amax(rows.dims)).reshape(rows.shape)
    errors = [
        4 * U * (size + np.abs(true)) + gamma(n) + 8 * U
        for n in (chain_roundings(rows.count), rows.count)
    ]
    short = unit(dtype) * (size + np.abs(true)) if is_short(dtype) else 0.0
    return (near(dtype, true, errors[0], errors[1] + short),)


RULES: dict[str, Rule] = {
    "sum": by_type(_sum),
    "mean": _mean,
    "var": _variance(root=False),
    "std": _variance(root=True),
    "var_mean": _var_mean,
    "cumsum": by_type(_cumsum),
    "logsumexp": _logsumexp,
}
