# SPDX-License-Identifier: Apache-2.0
"""A matrix product in exact values, and the elements of it that are not a matter of rounding."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from driver.isa import DType
from golden.formats import Floats, Values

Mask = npt.NDArray[np.bool_]

FLUSH = 2.0**-126
"""Smallest normal fp32 number: torch's 16-bit kernels may take anything below for 0."""


@dataclass(frozen=True)
class Product:
    """A batched product D = A·B (+ C) in exact values: float64, or int64 for int8 operands.

    Shapes: a [batch, M, K], b [batch, K, N], c [batch, M, N]. `operand` and `result` are the
    types that the values were stored in, and in which D is delivered.
    """

    a: Values
    b: Values
    c: Values | None
    operand: DType
    result: DType


@dataclass(frozen=True)
class Special:
    """Elements that operands which are not finite decide, whatever the order."""

    nan: Mask
    infinite: Floats
    """The infinity that the element is, or 0."""


def special_values(product: Product) -> Special:
    """Find the elements that operands which are not finite decide."""
    a, b, c = product.a, product.b, product.c
    shape = (*a.shape[:2], b.shape[2])
    nan, infinite = np.zeros(shape, np.bool_), np.zeros(shape)
    if all(np.isfinite(x).all() for x in (a, b, c) if x is not None):
        return Special(nan, infinite)
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
    return Special(invalid | (positive & negative), infinite)


def flushed_beside_infinity(product: Product) -> Mask:
    """Elements in which torch's 16-bit kernels may turn ∞ · subnormal into ∞ · 0, a NaN."""
    a, b = product.a, product.b
    infinite = any(np.isinf(x).any() for x in (a, b))
    if product.operand is DType.FP32 or not infinite:
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
