# SPDX-License-Identifier: Apache-2.0
"""Norms of vectors: of order 1, 2 and infinity one pass over the elements, of others three."""

from __future__ import annotations

import math

from driver.isa import DType
from driver.lower.builder import ProgramBuilder
from driver.lower.convert import as_type, is_float
from driver.lower.functions import power
from driver.lower.reduce import Dims, reduce, with_kept_dims
from driver.lower.registry import LoweringTable, Scalar
from driver.runtime.views import TensorView

TABLE = LoweringTable()
_IN_ONE_PASS = {1.0: "sum_magnitudes", math.inf: "largest_bits"}


@TABLE.op("linalg_vector_norm")
def vector_norm(
    b: ProgramBuilder,
    out: TensorView,
    self: TensorView,
    ord: Scalar = 2,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: str | None = None,
) -> None:
    """(Σ |self|^ord)^(1 ÷ ord); the largest or least |self| for ±∞, how many are not 0 for 0"""
    if not is_float(self) or not is_float(out):
        raise b.unsupported("dtype", self.dtype.name, "a floating-point type")
    given = self if out.dtype is DType.FP32 else as_type(b, self, out.dtype)
    x, result, dims = with_kept_dims(given, out, dim, keepdim)
    total, order = b.temp(DType.FP32, result.sizes), float(ord)
    if not x.count:
        b.fill(out, 0.0)
    elif order == 2:
        reduce(b, "sum_squares", x, total, dims)
        b.vector("sqrt", (total,), result)
    elif order in _IN_ONE_PASS:
        reduce(b, _IN_ONE_PASS[order], x, result, dims)
    else:
        terms = b.temp(DType.FP32, x.sizes)
        b.vector("abs", (x,), terms)
        if order == -math.inf:
            reduce(b, "amin", terms, result, dims)
        elif order == 0:
            flags, count = b.temp(DType.INT32, x.sizes), b.temp(DType.INT32, result.sizes)
            b.vector("float_truth", (terms,), flags)
            reduce(b, "int_sum", flags, count, dims)
            b.vector("int_to_float", (count,), result)
        else:
            power(b, terms, terms, order)
            reduce(b, "sum", terms, total, dims)
            power(b, result, total, 1.0 / order)
