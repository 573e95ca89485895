# SPDX-License-Identifier: Apache-2.0
"""The error of sums of products that are one chain of multiply-adds, as the matrix engine has them.

With u = 2^-24, K products p_k = a_k·b_k, C = c or 0, S = |c| + Σ|p_k|:

The chain is x_k = fl(x_{k-1} + p_k) with one rounding per step. With s_k the true partial sum and
e_k = |x_k − s_k|, each rounding adds at most u·(|s_k| + e_{k-1}), or half the smallest subnormal,
2^-150, below the normal range. Unrolled (running error analysis: N. J. Higham, Accuracy and
Stability of Numerical Algorithms, 2nd ed., SIAM 2002, section 3.3):

    e_K ≤ (1+u)^K · (u·Σ|s_k| + K·2^-150)

which for random data grows with K^1.5, where the usual γ_K·S grows with K²: sharp enough to see
one missing product among 4864.

The sums here are float64: products of fp32 numbers are exact there, and the rounding of float64
sums, (2K+4)·2^-53·S, is part of every bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from golden.bounds.expectation import U, gamma
from golden.formats import Floats

HALF_SUBNORMAL = 2.0**-150
"""What a rounding below the normal range of fp32 adds at most."""
_U64 = 2.0**-53
_BLOCK = 16
"""Products per float64 block: partial sums inside one are bounded, not computed."""
_TILE_ROWS, _TILE_COLUMNS = 64, 128


@dataclass(frozen=True)
class Sums:
    """Float64 sums of a product's finite terms, per element."""

    total: Floats
    absolute: Floats
    """S: of the magnitudes."""
    running: Floats
    """At least Σ|s_k| over all true partial sums s_k."""
    peak: Floats
    """At least the largest |s_k|."""

    @classmethod
    def starting(cls, start: Floats) -> Sums:
        """Of no products yet, in chains that start from these."""
        return cls(start, np.abs(start), np.zeros(start.shape), np.abs(start))

    def float64_error(self, terms: int) -> Floats:
        """Of these sums themselves."""
        return np.asarray((2 * terms + 4) * _U64 * self.absolute)

    def chain_error(self, terms: int) -> Floats:
        """e_K of a chain of so many products."""
        rounded = U * self.running + terms * HALF_SUBNORMAL
        return np.asarray((1 + gamma(terms)) * rounded + self.float64_error(terms))

    def tile(self, batch: int, rows: slice, columns: slice) -> Sums:
        """A window of all four; writing to it writes here."""
        window = (batch, rows, columns)
        return Sums(
            self.total[window], self.absolute[window], self.running[window], self.peak[window]
        )


def partial_sums(a: Floats, b: Floats, c: Floats | None) -> Sums:
    """Of products [batch, M, N] that start from c."""
    shape = (*a.shape[:2], b.shape[2])
    sums = Sums.starting(np.zeros(shape) if c is None else c.astype(np.float64))
    add_products(sums, a, b)
    return sums


def add_products(sums: Sums, a: Floats, b: Floats) -> None:
    """The chains go on with the terms of a·b.

    Tile by tile: small tiles stay in the cache, and below the size at which BLAS starts threads,
    which cost 5 to 30 times the work on a busy machine.
    """
    for batch in range(a.shape[0]):
        for row in range(0, a.shape[1], _TILE_ROWS):
            rows = slice(row, row + _TILE_ROWS)
            for column in range(0, b.shape[2], _TILE_COLUMNS):
                columns = slice(column, column + _TILE_COLUMNS)
                _add_tile(a[batch, rows], b[batch, :, columns], sums.tile(batch, rows, columns))


def _add_tile(a: Floats, b: Floats, sums: Sums) -> None:
    """Walk K in blocks. Within one, |s_k| ≤ |s at its start| + the products up to k."""
    for start in range(0, a.shape[1], _BLOCK):
        rows, columns = a[:, start : start + _BLOCK], b[start : start + _BLOCK]
        count = rows.shape[1]
        at_start, reach = np.abs(sums.total), np.abs(columns)
        block = np.abs(rows) @ reach
        # The j-th product of a block is part of count − j of its partial sums.
        sums.running[...] += count * at_start + (np.abs(rows) * np.arange(count, 0, -1)) @ reach
        np.maximum(sums.peak, at_start + block, out=sums.peak)
        sums.total[...] += rows @ columns
        sums.absolute[...] += block
