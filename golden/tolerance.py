# SPDX-License-Identifier: Apache-2.0
"""How far a matrix product may be from the true one: derived per element, never a loose rtol.

The NPU and torch both form fp32 sums of exact products (the operands are fp32, fp16 or bf16) and
round once more to the result type; they differ in the order. With u = 2^-24, K products
p_k = a_k·b_k, C = c or 0, S = |c| + Σ|p_k|, true value t = c + Σ p_k:

*The NPU* runs the chain x_k = fl(x_{k-1} + p_k) with one rounding per step. With s_k the true
partial sum and e_k = |x_k − s_k|, each rounding adds at most u·(|s_k| + e_{k-1}), or half the
smallest subnormal, 2^-150, below the normal range. Unrolled (running error analysis: N. J.
Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., SIAM 2002, section 3.3):

    e_K ≤ (1+u)^K · (u·Σ|s_k| + K·2^-150)

which for random data grows with K^1.5, where the usual γ_K·S grows with K²: sharp enough to see
one missing product among 4864.

*torch* may sum in any order, in blocks, with or without fma: every product and c pass through at
most n = K + 1 roundings (K + 2 with c), so |torch's sum − t| ≤ γ_n·S + n·(1+γ_n)·2^-150 with
γ_n = n·u/(1 − n·u) (Higham, (3.4) and section 4.2). Measured on AVX-512, AVX2 and SSE code paths,
fp16 and bf16 accumulate in fp32 and round once. Their AVX-512 code flushes: a product with a
subnormal operand may count as 0, and each result below 2^-126 may become 0; the bound for fp16
and bf16 allows that.

*Rounding to the result type* is monotonic, so a sum within [t−e, t+e] gives a result within
[round(t−e), round(t+e)]. That interval is the test: exact at ties, in subnormals and at overflow.

*Not finite.* A NaN product, or infinite terms of both signs, gives NaN in any order; infinite
terms of one sign give that infinity (but torch's bf16 kernels may take ∞ · subnormal for ∞ · 0, a
NaN: nothing is claimed about torch there). Finite terms can still overflow on the way, in one
order and not in another: where no bound below the largest fp32 number is at hand, nothing is
claimed about that element: it is counted in `unbounded`, not as compared. The sign of a zero is not
compared. Both are left to the bit-for-bit comparison with the cmodel.

True values are float64: products of fp32 numbers are exact there, and the rounding of float64
sums, (2K+4)·2^-53·S, is part of every bound.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from driver.isa import DType
from golden.formats import FLOAT_FORMATS, Floats, Values, round_to
from golden.problem import FLUSH, Mask, Product, Special, flushed_beside_infinity, special_values

U = FLOAT_FORMATS[DType.FP32].unit_roundoff
_U64 = 2.0**-53
_HALF_SUBNORMAL = 2.0**-150
_OVERFLOW = FLOAT_FORMATS[DType.FP32].max_finite
_BLOCK = 16
"""Products per float64 block: partial sums inside one are bounded, not computed."""
_TILE_ROWS, _TILE_COLUMNS = 64, 128


@dataclass(frozen=True)
class Interval:
    """What is admissible per element: low ≤ value ≤ high, or NaN, or (unbounded) anything."""

    low: Floats
    high: Floats
    nan: Mask
    unbounded: Mask

    def admits(self, values: Floats) -> Mask:
        """Which elements lie inside."""
        inside = (values >= self.low) & (values <= self.high)
        return np.where(self.nan, np.isnan(values), inside) | self.unbounded


@dataclass(frozen=True)
class Bounds:
    """The true product and the two admissible intervals around it."""

    true: Floats
    """float64; finite terms only where others are infinite or NaN."""
    npu: Interval
    torch: Interval


@dataclass(frozen=True)
class Comparison:
    """The NPU's result against torch's and against the true value."""

    elements_compared: int
    """Elements for which a bound is known: the others are in `unbounded`, and only there."""
    unbounded: int
    """Elements about which no bound can be given, since a partial sum may overflow."""
    zeros: int
    """Those of `elements_compared` whose true value is zero, as untouched memory often is."""
    npu_violations: int
    """Elements of the NPU outside their bound: a wrong result."""
    torch_violations: int
    """Elements of torch outside theirs: the reference is not what this module assumes."""
    max_error: float
    """Largest |NPU − torch| where both are finite."""
    bound: float
    """What |NPU − torch| may be there: the NPU's bound plus torch's actual distance from true."""
    worst_ratio: float
    """Largest |NPU − torch| ÷ its own bound; above 1 only with violations."""
    worst_index: tuple[int, ...]
    """(batch, row, column) of the first violation, else of the worst ratio."""
    reach: Floats
    """How far the NPU may be from torch's value, per element; infinite where no bound is known."""

    @property
    def ok(self) -> bool:
        """Something was compared and everything was in bounds."""
        return self.elements_compared > 0 and not self.npu_violations + self.torch_violations


def gamma(n: int, u: float = U) -> float:
    """γ_n = n·u/(1 − n·u): the relative error of n roundings (Higham, Lemma 3.1)."""
    if n * u >= 0.5:
        raise ValueError(f"{n} roundings are too many for a bound at u = {u}")
    return n * u / (1 - n * u)


def bounds(product: Product) -> Bounds:
    """True value and admissible results of a floating-point product."""
    finite_a, finite_b = _finite(product.a), _finite(product.b)
    finite_c = None if product.c is None else _finite(product.c)
    sums = _partial_sums(finite_a, finite_b, finite_c)
    terms = product.a.shape[2]
    exact = (2 * terms + 4) * _U64 * sums.absolute
    npu_error = (1 + gamma(terms)) * (U * sums.running + terms * _HALF_SUBNORMAL) + exact
    torch_error = _torch_error(product, finite_a, finite_b, sums.absolute) + exact
    special = special_values(product)
    torch = _interval(product.result, sums.total, torch_error, sums.absolute, special)
    return Bounds(
        sums.total,
        _interval(product.result, sums.total, npu_error, sums.peak, special),
        replace(torch, unbounded=torch.unbounded | flushed_beside_infinity(product)),
    )


def unclaimed(interval: Interval) -> Mask:
    """The elements of which anything would be admissible: they are not compared."""
    return interval.unbounded | (np.isneginf(interval.low) & np.isposinf(interval.high))


def reach_of(interval: Interval, torch: Values) -> Floats:
    """How far a value inside the interval may be from torch's; infinite where unclaimed.

    A NaN or an infinity that is required leaves no room: 0.
    """
    required = interval.nan | (np.isinf(interval.low) & (interval.low == interval.high))
    with np.errstate(invalid="ignore"):
        either = np.maximum(interval.high - torch, torch - interval.low)
    return np.asarray(
        np.where(unclaimed(interval), np.inf, np.where(required, 0.0, np.abs(either)))
    )


def zeros_in(true: Values, interval: Interval) -> int:
    """Compared elements whose true value is zero."""
    number = ~interval.nan & np.isfinite(interval.low) & np.isfinite(interval.high)
    return int(np.count_nonzero((true == 0) & number & ~unclaimed(interval)))


def compare(product: Product, npu: Values, torch: Values) -> Comparison:
    """Judge the NPU's and torch's result, both [batch, M, N] in exact values (see `decode`)."""
    shape = (*product.a.shape[:2], product.b.shape[2])
    if npu.shape != shape or torch.shape != shape:
        raise ValueError(f"results of shape {npu.shape} and {torch.shape} for a product {shape}")
    if product.operand is DType.INT8:
        return _compare_integers(product, npu, torch)
    limits = bounds(product)
    bad_npu, bad_torch = ~limits.npu.admits(npu), ~limits.torch.admits(torch)
    open_ = unclaimed(limits.npu)
    comparable = np.isfinite(npu) & np.isfinite(torch) & ~open_
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.where(comparable, np.abs(npu - torch), 0.0)
        reach = np.maximum(limits.npu.high - limits.true, limits.true - limits.npu.low)
        allowed = np.where(comparable, reach + np.abs(torch - limits.true), np.inf)
        ratio = np.divide(error, allowed, out=np.zeros_like(error), where=error > 0)
    bad = bad_npu | bad_torch
    worst = int(np.argmax(bad)) if bad.any() else int(np.argmax(ratio))
    largest = int(np.argmax(error))
    return Comparison(
        elements_compared=int(np.count_nonzero(~open_)),
        unbounded=int(np.count_nonzero(open_)),
        zeros=zeros_in(limits.true, limits.npu),
        npu_violations=int(np.count_nonzero(bad_npu)),
        torch_violations=int(np.count_nonzero(bad_torch)),
        max_error=float(error.flat[largest]),
        bound=float(allowed.flat[largest]),
        worst_ratio=float(ratio.max()),
        worst_index=tuple(int(i) for i in np.unravel_index(worst, shape)),
        reach=reach_of(limits.npu, torch),
    )


@dataclass(frozen=True)
class _Sums:
    """Float64 sums of a product's finite terms, per element."""

    total: Floats
    absolute: Floats
    """S: of the magnitudes."""
    running: Floats
    """At least Σ|s_k| over all true partial sums s_k."""
    peak: Floats
    """At least the largest |s_k|."""

    def tile(self, batch: int, rows: slice, columns: slice) -> _Sums:
        """A window of all four; writing to it writes here."""
        window = (batch, rows, columns)
        return _Sums(
            self.total[window], self.absolute[window], self.running[window], self.peak[window]
        )


def _partial_sums(a: Floats, b: Floats, c: Floats | None) -> _Sums:
    """Tile by tile: small tiles stay in the cache, and below the size at which BLAS starts
    threads, which cost 5 to 30 times the work on a busy machine.
    """
    shape = (*a.shape[:2], b.shape[2])
    total = np.zeros(shape) if c is None else c.astype(np.float64)
    sums = _Sums(total, np.abs(total), np.zeros(shape), np.abs(total))
    for batch in range(shape[0]):
        for row in range(0, shape[1], _TILE_ROWS):
            rows = slice(row, row + _TILE_ROWS)
            for column in range(0, shape[2], _TILE_COLUMNS):
                columns = slice(column, column + _TILE_COLUMNS)
                _add_tile(a[batch, rows], b[batch, :, columns], sums.tile(batch, rows, columns))
    return sums


def _add_tile(a: Floats, b: Floats, sums: _Sums) -> None:
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


def _torch_error(product: Product, a: Floats, b: Floats, absolute: Floats) -> Floats:
    """Bound of torch's fp32 sum: any order, and the flushing of its 16-bit kernels."""
    roundings = a.shape[2] + (1 if product.c is None else 2)
    growth = gamma(roundings)
    if product.operand is DType.FP32:
        subnormal = roundings * (1 + growth) * _HALF_SUBNORMAL
        return np.asarray(growth * absolute + subnormal)
    flushed_a, flushed_b = (np.where(np.abs(x) < FLUSH, x, 0.0) for x in (a, b))
    lost = np.zeros_like(absolute)
    if flushed_a.any() or flushed_b.any():
        lost = np.abs(flushed_a) @ np.abs(b) + np.abs(a) @ np.abs(flushed_b)
    # One flush more than roundings: the conversion to the result type may flush as well.
    return np.asarray(growth * absolute + (1 + growth) * (lost + (roundings + 1) * FLUSH))


def _interval(
    result: DType, true: Floats, error: Floats, peak: Floats, special: Special
) -> Interval:
    """Round the bounds of a sum whose partial sums stay below peak + error."""
    low, high = round_to(true - error, result), round_to(true + error, result)
    return Interval(
        low=np.where(special.infinite != 0, special.infinite, low),
        high=np.where(special.infinite != 0, special.infinite, high),
        nan=special.nan,
        unbounded=(peak + error >= _OVERFLOW) & ~special.nan,
    )


def _finite(values: Values) -> Floats:
    finite = np.isfinite(values)
    return values if finite.all() else np.where(finite, values, 0.0)


def _compare_integers(product: Product, npu: Values, torch: Values) -> Comparison:
    """int8: exact sums modulo 2^32, so equality."""
    true = product.a.astype(np.int64) @ product.b.astype(np.int64)
    if product.c is not None:
        true = true + product.c
    wrapped = (true + 2**31) % 2**32 - 2**31
    bad_npu, bad_torch = npu != wrapped, torch != wrapped
    bad = bad_npu | bad_torch
    error = np.abs(npu - torch)
    return Comparison(
        elements_compared=npu.size,
        unbounded=0,
        zeros=int(np.count_nonzero(wrapped == 0)),
        npu_violations=int(np.count_nonzero(bad_npu)),
        torch_violations=int(np.count_nonzero(bad_torch)),
        max_error=float(error.max()),
        bound=0.0,
        worst_ratio=float("inf") if error.any() else 0.0,
        worst_index=tuple(int(i) for i in np.unravel_index(int(np.argmax(bad)), npu.shape)),
        reach=np.zeros(npu.shape),
    )
