# SPDX-License-Identifier: Apache-2.0
"""The NPU's values against torch's, within what an Expectation admits: counts and worst figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from golden.bounds import Expectation
from golden.formats import Floats, Mask, Values


@dataclass(frozen=True)
class Comparison:
    """The NPU's result against torch's and against the true value."""

    elements_compared: int = 0
    """Elements for which a bound is known: the others are in `unbounded`, and only there."""
    unbounded: int = 0
    """Elements about which no bound can be given, since a partial sum may overflow."""
    zeros: int = 0
    """Those of `elements_compared` whose true value is zero, as untouched memory often is."""
    npu_violations: int = 0
    """Elements of the NPU outside their bound: a wrong result."""
    torch_violations: int = 0
    """Elements of torch outside theirs: the reference is not what the bounds assume."""
    max_error: float = 0.0
    """Largest |NPU − torch| where both are finite; of the RTL where its bits are others."""
    bound: float = 0.0
    """What |NPU − torch| may be there: the NPU's bound plus torch's actual distance from true."""
    worst_ratio: float = 0.0
    """Largest |NPU − torch| ÷ its own bound; above 1 only with violations."""
    worst_index: tuple[int, ...] = ()
    """Of the first violation, else of the worst ratio."""

    @property
    def violations(self) -> int:
        """Of both."""
        return self.npu_violations + self.torch_violations

    @property
    def ok(self) -> bool:
        """Something was compared and everything was in bounds."""
        return self.elements_compared > 0 and not self.violations


def compare(expectation: Expectation, npu: Values, torch: Values) -> Comparison:
    """Compare two results of the expectation's shape, in exact values (golden.formats.decode)."""
    true, interval = expectation.true, expectation.npu
    if npu.shape != true.shape or torch.shape != true.shape:
        raise ValueError(f"results of shape {npu.shape} and {torch.shape} for {true.shape}")
    if not true.size:
        return Comparison()
    bad_npu, bad_torch = ~expectation.admits_npu(npu), ~expectation.admits_torch(torch)
    error, allowed = _distance(expectation, npu, torch)
    with np.errstate(divide="ignore"):
        ratio = np.divide(error, allowed, out=np.zeros_like(error), where=error > 0)
    bad = bad_npu | bad_torch
    largest = int(np.argmax(error))
    open_ = int(np.count_nonzero(interval.not_compared))
    number = ~interval.nan & np.isfinite(interval.low) & np.isfinite(interval.high)
    return Comparison(
        elements_compared=error.size - open_,
        unbounded=open_,
        zeros=int(np.count_nonzero((true == 0) & number & ~interval.not_compared)),
        npu_violations=int(np.count_nonzero(bad_npu)),
        torch_violations=int(np.count_nonzero(bad_torch)),
        max_error=float(error.flat[largest]),
        bound=float(allowed.flat[largest]),
        worst_ratio=float(ratio.max()),
        worst_index=first(bad) if bad.any() else first(ratio == ratio.max()),
    )


def _distance(expectation: Expectation, npu: Values, torch: Values) -> tuple[Floats, Floats]:
    """(|NPU − torch|, what it may be) per element; 0 and infinity where not both are finite."""
    known = (npu, torch, expectation.true)
    left, right, true = (values.astype(np.float64) for values in known)
    interval = expectation.npu
    with np.errstate(invalid="ignore", over="ignore"):
        finite = np.isfinite(left) & np.isfinite(right)
        comparable = finite & ~interval.not_compared & ~interval.nan
        error = np.where(comparable, np.abs(left - right), 0.0)
        reach = np.maximum(interval.high - true, true - interval.low)
        allowed = np.where(comparable, reach + np.abs(right - true), np.inf)
    return error, allowed


def joined(parts: Sequence[Comparison]) -> Comparison:
    """Counts of all outputs; the worst figures are those of the worst output."""
    if not parts:
        return Comparison()
    worst = max(parts, key=lambda part: (part.violations, part.worst_ratio))
    return replace(
        worst,
        elements_compared=sum(part.elements_compared for part in parts),
        unbounded=sum(part.unbounded for part in parts),
        zeros=sum(part.zeros for part in parts),
        npu_violations=sum(part.npu_violations for part in parts),
        torch_violations=sum(part.torch_violations for part in parts),
    )


def reach(expectation: Expectation, torch: Values) -> Floats:
    """How far an admissible value may be from torch's, per element; infinite where not compared.

    A NaN or an infinity that is required leaves no room: 0.
    """
    interval = expectation.npu
    required = interval.nan | (np.isinf(interval.low) & (interval.low == interval.high))
    with np.errstate(invalid="ignore"):
        either = np.maximum(interval.high - torch, torch - interval.low)
    return np.asarray(
        np.where(interval.not_compared, np.inf, np.where(required, 0.0, np.abs(either)))
    )


def first(mask: Mask) -> tuple[int, ...]:
    """Index of the first element of a mask."""
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(mask)), mask.shape))
