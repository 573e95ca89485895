# SPDX-License-Identifier: Apache-2.0
"""int8 and int4: quantise, dequantise, requantise; products with weights of four bits.

Scales and zero points are tensors of one element, or one for each index of `axis`.
"""

from __future__ import annotations

from driver.isa import DType
from driver.isa.types import INT4_GROUPS, INT4_ROWS
from driver.lower.builder import ProgramBuilder
from driver.lower.convert import is_float, require_floats, require_integers
from driver.lower.registry import LoweringTable
from driver.runtime.views import TensorView

TABLE = LoweringTable()


def _per_axis(values: TensorView, rank: int, axis: int | None) -> TensorView:
    """Scales or zero points beside a tensor of so many dimensions."""
    if axis is None or not values.rank:
        return values
    at = axis % rank
    return values.reshaped(
        [values.count if dim == at else 1 for dim in range(rank)],
        [values.strides[0] if dim == at else 0 for dim in range(rank)],
    )


def _factors(
    b: ProgramBuilder, rank: int, scale: TensorView, zero_point: TensorView, axis: int | None
) -> tuple[TensorView, TensorView]:
    """Scale and zero point beside a tensor of so many dimensions."""
    if not is_float(scale) or is_float(zero_point):
        types = f"{scale.dtype.name} and {zero_point.dtype.name}"
        raise b.unsupported("scale, zero_point", types, "a float and an integer type")
    return _per_axis(scale, rank, axis), _per_axis(zero_point, rank, axis)


@TABLE.op("npu.quantize")
def quantize(
    b: ProgramBuilder,
    out: TensorView,
    x: TensorView,
    scale: TensorView,
    zero_point: TensorView,
    axis: int | None = None,
) -> None:
    """x ÷ scale to the nearest integer, plus zero point, saturated to int8"""
    require_floats(b, x)
    b.vector("quantize", (x, *_factors(b, x.rank, scale, zero_point, axis)), out)


@TABLE.op("npu.dequantize")
def dequantize(
    b: ProgramBuilder,
    out: TensorView,
    q: TensorView,
    scale: TensorView,
    zero_point: TensorView,
    axis: int | None = None,
) -> None:
    """(q − zero point)·scale"""
    require_integers(b, q)
    b.vector("dequantize", (q, *_factors(b, q.rank, scale, zero_point, axis)), out)


@TABLE.op("npu.requantize")
def requantize(
    b: ProgramBuilder,
    out: TensorView,
    acc: TensorView,
    scale: TensorView,
    zero_point: TensorView,
    axis: int | None = None,
) -> None:
    """acc·scale to the nearest integer, plus zero point, saturated to int8"""
    require_integers(b, acc)
    b.vector("requantize", (acc, *_factors(b, acc.rank, scale, zero_point, axis)), out)


@TABLE.op("npu.int4_mm")
def int4_mm(
    b: ProgramBuilder,
    out: TensorView,
    x: TensorView,
    weight: TensorView,
    scales: TensorView,
    group_size: int,
) -> None:
    """x [M, K] · weights [K, N]: words [⌈K ÷ 8⌉, N] hold rows 8k, 8k + 1, … from their lowest four
    bits on; each is 8 less, times the scale of its group of rows and its column"""
    group = group_size.bit_length() - 1
    if group_size != 1 << max(group, 0) or group not in INT4_GROUPS:
        few, many = (1 << INT4_GROUPS[at] for at in (0, -1))
        raise b.unsupported("group_size", group_size, f"a power of two from {few} to {many}")
    if not is_float(x) or scales.dtype != x.dtype or weight.dtype is not DType.INT32:
        types = ", ".join(view.dtype.name for view in (x, weight, scales))
        raise b.unsupported("dtype", types, "x and scales of one floating-point type, INT32 words")
    rows, depth = x.sizes
    columns = out.sizes[-1]
    sizes = [(-(-depth // per_row), columns) for per_row in (INT4_ROWS, group_size)]
    if [weight.sizes, scales.sizes] != sizes or out.sizes != (rows, columns):
        raise b.unsupported("shapes", (weight.sizes, scales.sizes), f"{sizes} for {x.sizes}")
    if not depth:
        b.fill(out, 0)
    elif out.count:
        left, words, factors, result = (view.inserted(0) for view in (x, weight, scales, out))
        b.int4_matmul(left, words, factors, result, group)
