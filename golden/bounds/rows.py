# SPDX-License-Identifier: Apache-2.0
"""Rows to be brought to mean 0 and variance 1: their statistics, and the errors of either side.

The derivation is that of golden.bounds.norms. Knows no op.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from golden.bounds.expectation import SLACK, TINY, U, gamma
from golden.bounds.reductions import shift_of_mean, shift_of_sum, square_error
from golden.formats import Floats, Mask

FUNCTION = 4 * U
"""Relative error of a root's reciprocal of 2 ULP."""


@dataclass(frozen=True)
class Rows:
    """Float64 statistics of x [rows, K]; all but `x` are [rows, 1]."""

    x: Floats
    mean: Floats
    spread: Floats
    """Σ(x − mean)²."""
    absolute: Floats
    """Σ|x|."""
    infinite: Mask
    """Rows with an infinity and no NaN: what ∞ − ∞ and ∞ ÷ ∞ become depends on the formula."""
    eps: float

    @staticmethod
    def of(given: Floats, eps: float) -> Rows:
        """The statistics of rows; what is not finite counts as 0."""
        infinite = np.asarray(np.isinf(given).any(1, keepdims=True))
        infinite &= ~np.isnan(given).any(1, keepdims=True)
        x = np.where(np.isfinite(given), given, 0.0)
        mean = x.mean(1, keepdims=True) if x.shape[1] else np.zeros((len(x), 1))
        spread = ((x - mean) ** 2).sum(1, keepdims=True)
        return Rows(x, mean, spread, np.abs(x).sum(1, keepdims=True), infinite, eps)

    @property
    def count(self) -> int:
        """K."""
        return int(self.x.shape[1])

    @property
    def square(self) -> Floats:
        """Variance + eps."""
        return np.asarray(self.spread / max(self.count, 1) + self.eps)

    def errors(self, n: int) -> RowErrors:
        """Of the NPU's three passes, whose sums have n roundings."""
        shift = shift_of_mean(self.absolute, self.spread, self.mean, self.count, n)
        return self._errors(shift, square_error(self.spread, shift, self.count, n))

    def two_pass_errors(self, n: int, stored: float) -> RowErrors:
        """Of torch's two passes, whose sums have n roundings; `stored`: the unit roundoff of the
        type that the mean is rounded to in between, which moves Σ(x − mean)² by K·δ²."""
        shift = shift_of_sum(self.absolute, self.mean, self.count, n)
        spread = square_error(self.spread, shift, self.count, n)
        if stored:
            shift = shift + stored * np.abs(self.mean)
            spread = spread + max(self.count, 1) * shift**2
        return self._errors(shift, spread)

    def torch_errors(self, *, difference_of_squares: bool) -> RowErrors:
        """Of torch's one pass over a row, in either of its forms."""
        count = max(self.count, 1)
        largest = np.abs(self.x).max(1, keepdims=True, initial=0.0)
        shift = gamma(count + 2) * largest + TINY * count
        wrong = welford_error(largest, self.spread, count)
        if difference_of_squares:
            wrong = np.maximum(wrong, 2 * gamma(count + 4) * (self.x**2).sum(1, keepdims=True))
        return self._errors(shift, wrong)

    def _errors(self, shift: Floats, spread: Floats) -> RowErrors:
        wrong = spread / max(self.count, 1) + 3 * U * self.square
        rho = root_error(wrong, self.square, self.eps)
        r = 1 / np.sqrt(self.square)
        return RowErrors(shift, spread, rho, r * rho + 2 * U * r)


@dataclass(frozen=True)
class RowErrors:
    """Absolute errors of one side, [rows, 1]."""

    shift: Floats
    """Of the mean."""
    spread: Floats
    """Of Σ(x − mean)²."""
    rho: Floats
    """Of r = 1/√(variance + eps), relative."""
    root: Floats
    """Of r."""

    def result(self, rows: Rows, w: Floats, b: Floats) -> Floats:
        """Of (x − mean)·r·w + b; w and b broadcast to the rows."""
        scaled, t = np.abs(w) / np.sqrt(rows.square), np.abs(rows.x - rows.mean)
        grown = 1 + self.rho
        error = scaled * (self.shift * grown + t * (self.rho + 4 * U * grown)) * (1 + 8 * U)
        return np.asarray(error + 2 * U * (scaled * t * grown + np.abs(b)) + TINY)

    def applied(self, rows: Rows, w: Floats, reach: Floats) -> Floats:
        """What x·(r·w) + (b − m·r·w) adds, `reach` = |x| + |m|."""
        return np.asarray(4 * U * reach * np.abs(w) / np.sqrt(rows.square) * (1 + self.rho))


def root_error(error: Floats, square: Floats, eps: float) -> Floats:
    """ρ: relative error of 1/√square, where `square` has an absolute error and is never computed
    below eps."""
    with np.errstate(divide="ignore", invalid="ignore"):
        least = np.maximum(square - error, eps * (1 - 2 * U))
        worst = np.maximum(np.sqrt(square / least) - 1, 1 - np.sqrt(square / (square + error)))
    return np.asarray(np.where(error == 0, 0.0, worst + SLACK) + FUNCTION)


def welford_error(largest: Floats, spread: Floats, count: int) -> Floats:
    """Error of torch's Σ(x − m)² over rows: `largest` max|x|, `spread` the true sum."""
    shift = gamma(count + 2) * largest + TINY
    levels = np.log2(max(count, 2))
    first = (3 + 2 * np.sqrt(levels)) * shift * np.sqrt(count * spread)
    second = count * shift**2 * (1 + levels)
    return np.asarray(gamma(count + 6) * (spread + second) + first + second + TINY * count)
