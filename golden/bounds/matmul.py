# SPDX-License-Identifier: Apache-2.0
"""How far a matrix product may be from the true one: derived per element, never a loose rtol.

The NPU and torch both form fp32 sums of exact products (the operands are fp32, fp16 or bf16) and
round once more to the result type; they differ in the order. With u = 2^-24, K products
p_k = a_k·b_k, C = c or 0, S = |c| + Σ|p_k|, true value t = c + Σ p_k:

*The NPU* runs the chain: golden.bounds.chains.

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
NaN, and multiply what lies in memory behind a row of odd length by 0: nothing is claimed about
torch there). Finite terms can still overflow on the way, in one order and not in another: where no
bound below the largest fp32 number is at hand, nothing is claimed about that element: it is counted
in `unbounded`, not as compared.

The order is specified, so the bits are: golden.bounds.specified.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from driver.isa import DType
from driver.runtime.torch_types import NPU_TYPES
from golden.bounds.chains import HALF_SUBNORMAL, partial_sums
from golden.bounds.exact import by_type
from golden.bounds.expectation import (
    FLUSH,
    LARGEST,
    Expectation,
    Interval,
    Rule,
    Subject,
    gamma,
)
from golden.bounds.products import behind_rows, matrix_product
from golden.bounds.specified import of_product
from golden.formats import Floats, Mask, Values, round_to
from golden.products import Product


@dataclass(frozen=True)
class _Special:
    """Elements that operands which are not finite decide, whatever the order."""

    nan: Mask
    infinite: Floats
    """The infinity that the element is, or 0."""


def _matmul(subject: Subject) -> tuple[Expectation | None, ...]:
    """A product of the matrix engine; others by the coarser bound of golden.bounds.products."""
    product, answer = subject.call.product, subject.answer()
    if product is None or product.result is not NPU_TYPES[answer.dtype]:
        return by_type(matrix_product)(subject)
    return (product_expectation(product).reshaped(tuple(answer.shape)),)


def product_expectation(product: Product) -> Expectation:
    """Its bounds, and the bits that are specified, [batch, M, N]."""
    return replace(product_bounds(product), specified=of_product(product))


def product_bounds(product: Product) -> Expectation:
    """True value and admissible results, [batch, M, N]; true: finite terms only where others are
    infinite or NaN."""
    a, b, c = product.values()
    if product.operand is DType.INT8:
        return _integers(a, b, c)
    finite_a, finite_b = _finite(a), _finite(b)
    sums = partial_sums(finite_a, finite_b, None if c is None else _finite(c))
    terms = a.shape[2]
    exact, npu_error = sums.float64_error(terms), sums.chain_error(terms)
    roundings = terms + (1 if c is None else 2)
    torch_error = _torch_error(product.operand, roundings, finite_a, finite_b, sums.absolute)
    special = _special_values(a, b, c)
    torch = _interval(product.result, sums.total, torch_error + exact, sums.absolute, special)
    if product.operand is not DType.FP32:
        behind = behind_rows(product.a).reshape(a.shape[:2])[..., None]
        lost = _flushed_beside_infinity(a, b) | behind
        torch = replace(torch, unbounded=torch.unbounded | lost)
    npu = _interval(product.result, sums.total, npu_error, sums.peak, special)
    return Expectation(sums.total, npu, torch)


def _integers(a: Values, b: Values, c: Values | None) -> Expectation:
    """int8: exact sums modulo 2^32, so equality."""
    true = a.astype(np.int64) @ b.astype(np.int64)
    true = true if c is None else true + c
    wrapped = (true + 2**31) % 2**32 - 2**31
    no = np.zeros(wrapped.shape, np.bool_)
    equal = Interval(wrapped, wrapped, no, no)
    return Expectation(wrapped, equal, equal)


def _torch_error(operand: DType, roundings: int, a: Floats, b: Floats, absolute: Floats) -> Floats:
    """Bound of torch's fp32 sum: any order, and the flushing of its 16-bit kernels."""
    growth = gamma(roundings)
    if operand is DType.FP32:
        subnormal = roundings * (1 + growth) * HALF_SUBNORMAL
        return np.asarray(growth * absolute + subnormal)
    flushed_a, flushed_b = (np.where(np.abs(x) < FLUSH, x, 0.0) for x in (a, b))
    lost = np.zeros_like(absolute)
    if flushed_a.any() or flushed_b.any():
        lost = np.abs(flushed_a) @ np.abs(b) + np.abs(a) @ np.abs(flushed_b)
    # One flush more than roundings: the conversion to the result type may flush as well.
    return np.asarray(growth * absolute + (1 + growth) * (lost + (roundings + 1) * FLUSH))


def _interval(
    result: DType, true: Floats, error: Floats, peak: Floats, special: _Special
) -> Interval:
    """Round the bounds of a sum whose partial sums stay below peak + error."""
    low, high = round_to(true - error, result), round_to(true + error, result)
    return Interval(
        low=np.where(special.infinite != 0, special.infinite, low),
        high=np.where(special.infinite != 0, special.infinite, high),
        nan=special.nan,
        unbounded=(peak + error >= LARGEST) & ~special.nan,
    )


def _finite(values: Values) -> Floats:
    finite = np.isfinite(values)
    return values if finite.all() else np.where(finite, values, 0.0)


def _special_values(a: Values, b: Values, c: Values | None) -> _Special:
    """Find the elements that operands which are not finite decide."""
    shape = (*a.shape[:2], b.shape[2])
    nan, infinite = np.zeros(shape, np.bool_), np.zeros(shape)
    if all(np.isfinite(x).all() for x in (a, b, c) if x is not None):
        return _Special(nan, infinite)
    invalid = _any(np.isnan(a), np.ones_like(b, np.bool_)) | _any(
        np.ones_like(a, np.bool_), np.isnan(b)
    )
    invalid |= _any(np.isinf(a), b == 0) | _any(a == 0, np.isinf(b))
    positive, negative = _infinite_terms(a, b), _infinite_terms(-a, b)
    if c is not None:
        invalid |= np.isnan(c)
        positive |= c == np.inf
        negative |= c == -np.inf
    infinite = np.where(positive, np.inf, np.where(negative, -np.inf, 0.0))
    return _Special(invalid | (positive & negative), infinite)


def _flushed_beside_infinity(a: Values, b: Values) -> Mask:
    """Elements in which torch's 16-bit kernels may turn ∞ · subnormal into ∞ · 0, a NaN."""
    if not any(np.isinf(x).any() for x in (a, b)):
        return np.zeros((*a.shape[:2], b.shape[2]), np.bool_)
    small_a, small_b = ((x != 0) & (np.abs(x) < FLUSH) for x in (a, b))
    return _any(np.isinf(a), small_b) | _any(small_a, np.isinf(b))


def _infinite_terms(a: Values, b: Values) -> Mask:
    """Elements with a product that is +inf."""
    return (
        _any(a == np.inf, b > 0)
        | _any(a == -np.inf, b < 0)
        | _any(a > 0, b == np.inf)
        | _any(a < 0, b == -np.inf)
    )


def _any(a: Mask, b: Mask) -> Mask:
    """Elements with a k for which both hold."""
    return np.asarray(a.astype(np.float64) @ b.astype(np.float64) > 0)


RULES: dict[str, Rule] = dict.fromkeys(
    ("mm", "bmm", "addmm", "baddbmm", "linear", "_int_mm"), _matmul
)
