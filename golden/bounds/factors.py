# SPDX-License-Identifier: Apache-2.0
"""Products over a dimension, running products, and the sign bit.

A product of K factors passes K − 1 roundings in whatever order it is formed, so it is within
γ_K·|true| (N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., lemma 3.1), as
long as no partial product leaves the normal range. The largest partial product of any order is
M = Π max(|x|, 1), the least one m = Π min(|x|, 1) over the factors that are not 0.

*m below the normal range*: a rounding there adds at most half the least subnormal, TINY/2, and the
factors that follow carry that to at most (1 + γ_K)·M times as much: K·TINY·M in all.
*M above the range*: an order may give ∞ or not, and nothing is claimed, except where m is normal
and the whole product is beyond the range too. Then each order ends at ∞: one that overflows on the
way stays there, as no partial product is 0, and any other has the product itself to round.

Beside an infinite factor nothing is claimed if m is not normal: ∞·0 is a NaN. torch rounds 16-bit
types after each factor.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from driver.runtime.torch_types import NPU_TYPES
from golden.bounds.exact import by_type
from golden.bounds.expectation import (
    FLUSH,
    TINY,
    Expectation,
    Rule,
    Subject,
    exact,
    gamma,
    is_short,
    near,
    unclaimed,
    unit,
)
from golden.calls import truths
from golden.formats import FLOAT_FORMATS, Floats, Mask
from golden.tensors import values_of

_LARGEST = 2.0**127


def _factors(subject: Subject) -> torch.Tensor:
    """|self| in float64, in the type that the op multiplies in; at least one dimension."""
    source: torch.Tensor = subject.call["self"]
    source = source.to(subject.answer().dtype).double().abs()
    return source.reshape(1) if source.dim() == 0 else source


def _along(subject: Subject, values: torch.Tensor, running: bool) -> Floats:
    dim = subject.call.arguments.get("dim")
    made: Any
    if dim is None:
        made = values.prod()
    elif running:
        made = values.cumprod(dim)
    else:
        made = values.prod(dim)
    return values_of(made).reshape(tuple(subject.answer().shape)).astype(np.float64)


def _product(running: bool) -> Rule:
    def rule(subject: Subject) -> tuple[Expectation | None, ...]:
        dtype = subject.answer().dtype
        factors = _factors(subject)
        dim = subject.call.arguments.get("dim")
        count = factors.numel() if dim is None else factors.shape[dim]
        finite = torch.where(factors.isfinite() & (factors != 0), factors, 1.0)
        largest = _along(subject, finite.clamp(min=1.0), running)
        least = _along(subject, finite.clamp(max=1.0), running)
        source = subject.call["self"].to(dtype)  # torch and NPU convert first
        (wide,) = truths(subject.call, self=source)
        assert wide is not None
        true = _overflown(values_of(wide).astype(np.float64), least, gamma(count + 1))
        size = np.abs(np.where(np.isfinite(true), true, 0.0))
        error = gamma(count + 1) * size
        error = error + np.where(least < FLUSH, count * TINY * np.minimum(largest, _LARGEST), 0.0)
        other = error
        if is_short(dtype):
            other = other + 2 * count * unit(dtype) * size
        found = near(dtype, true, error, other)
        return (_within(found, dtype, largest, least),)

    return rule


def _overflown(true: Floats, least: Floats, error: float) -> Floats:
    """The truth, ±∞ where every order ends there."""
    certain = (least >= FLUSH * (1 + 2 * error)) & (np.abs(true) * (1 - error) >= 2 * _LARGEST)
    return np.asarray(np.where(certain, np.copysign(np.inf, true), true))


def _within(found: Expectation, dtype: torch.dtype, largest: Floats, least: Floats) -> Expectation:
    """Nothing is claimed where a partial product may leave the range of its type."""
    form = FLOAT_FORMATS[NPU_TYPES[dtype]]
    lost = (least < FLUSH) & ~np.isfinite(found.true)
    out: Mask = np.asarray(((largest > _LARGEST) & ~np.isinf(found.true)) | lost)
    least_normal = 2.0 ** (form.min_quantum + form.precision - 1)
    narrow: Mask = np.asarray((largest * 2 > form.max_finite) | (least < least_normal))
    found = unclaimed(found, out)
    side = unclaimed(found, narrow & np.asarray(is_short(dtype)))
    return Expectation(found.true, found.npu, side.torch, found.signed_zeros)


def _sign_bit(subject: Subject) -> tuple[Expectation | None, ...]:
    """torch's answer; open for NaN, whose sign survives no conversion."""
    source = subject.call["self"]
    return (unclaimed(exact(subject.answer()), source.isnan().numpy()),)


RULES: dict[str, Rule] = {
    "prod": by_type(_product(running=False)),
    "cumprod": by_type(_product(running=True)),
    "signbit": _sign_bit,
}
