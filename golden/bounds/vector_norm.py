# SPDX-License-Identifier: Apache-2.0
"""Norms of vectors. S is the sum of |x|^p over K elements, n the roundings on an element's way.

Order ±∞ chooses an element and 0 counts: equality. Order 1 is a sum: γ_n·S. Order 2: squares round
once, e(S) = γ_{n+1}·S + 2^-149·(K + 1). Other orders: powers have 2 ULP, e(S) = (γ_n + 5·u)·S +
2^-149·(K + 1), torch's 4 ULP. The root of S ± e(S) in float64 gives the interval, of which the root
rounds (2 u), or is a power (2 ULP, torch's 4) of an exponent that is rounded: u·|log S ÷ p| of it.
Of a zero element a negative order makes S infinite and the norm 0, without an error.
"""

from __future__ import annotations

import math
from math import prod

import numpy as np

from golden.bounds.elementwise import true_of
from golden.bounds.exact import equal
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
from golden.bounds.reductions import dims_of, finite, roundings
from golden.formats import Floats
from golden.tensors import values_of


def _root_error(total: Floats, error: Floats, order: float, ulps: int) -> Floats:
    """Of S^(1/p) for S known within an error."""
    ends = [np.maximum(total + side * error, 0.0) ** (1 / order) for side in (-1, 0, 1)]
    change = np.maximum(np.abs(ends[0] - ends[1]), np.abs(ends[2] - ends[1]))
    relative = np.full_like(total, 2 * U)
    if order != 2:
        relative = 2 * U * ulps + U * np.abs(np.log(np.maximum(total, TINY)) / order)
    return np.asarray(change + relative * np.abs(ends[1]) + TINY)


def _norm(subject: Subject) -> tuple[Expectation | None, ...]:
    call, dtype, order = (
        subject.call,
        subject.answer().dtype,
        float(np.float32(subject.call["ord"])),
    )
    if order == 0 or math.isinf(order):
        return equal(subject)
    dims, true = dims_of(call), true_of(subject)
    sizes = [call["self"].shape[at] for at in sorted(dims)]
    count = prod(sizes)
    with np.errstate(all="ignore"):
        terms = finite(call["self"]).abs() ** order
        total = values_of(terms.sum(dims) if dims else terms).reshape(true.shape)
        exact = np.isinf(total) & (true == 0)
        errors = []
        for n, ulps in (
            (roundings(*sizes), 2),
            (count + 2, 4),
        ):
            own = gamma(n + 1) if order in (1, 2) else gamma(n) + U * (2 * ulps + 1)
            error = own * total + TINY * (count + 1)
            found = error if order == 1 else _root_error(total, error, order, ulps)
            errors.append(np.where(exact, 0.0, found))
        npu, other = errors
        if is_short(dtype):
            other = other + 2 * unit(dtype) * np.where(np.isfinite(true), true, 0.0)
        peak = np.where(exact, 0.0, np.where(np.isfinite(total), total, np.inf))
        return (near(dtype, true, npu, other, peak=peak),)


RULES: dict[str, Rule] = {"linalg_vector_norm": _norm}
