# SPDX-License-Identifier: Apache-2.0
"""int8 and int4: quantise, dequantise, requantise; products with weights of four bits.

Scales and zero points are tensors of one element, or one for each index of `axis`.
"""

from __future__ import annotations

from driver.lower.builder import ProgramBuilder
from driver.lower.convert import is_float
from driver.lower.matmul import combine
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
    if not is_float(x):
        raise b.unsupported("dtype", x.dtype.name, "a floating-point type")
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
    if is_float(q):
        raise b.unsupported("dtype", q.dtype.name, "an integer type")
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
    if is_float(acc):
        raise b.unsupported("dtype", acc.dtype.name, "an integer type")
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
    """x [M, K] · weights [K, N]: bytes [K ÷ 2, N] hold rows 2k in their low, 2k + 1 in their high
    nibbles; each is 8 less, times the scale of its group of rows and its column"""
    halves, columns = weight.sizes
    if group_size < 2 or group_size % 2 or 2 * halves % group_size:
        raise b.unsupported("group_size", group_size, f"an even divisor of {2 * halves}")
    groups = 2 * halves // group_size
    wide = b.temp(x.dtype, (2 * halves, columns))
    rows = wide.split(0, (groups, group_size // 2, 2))
    packed, factors = weight.split(0, (groups, group_size // 2)), scales.inserted(1)
    for at, program in enumerate(("int4_low", "int4_high")):
        b.vector(program, (packed, factors), rows.selected(2, at))
    combine(b, x, wide, out, None)
