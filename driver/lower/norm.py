# SPDX-License-Identifier: Apache-2.0
"""Softmax, and normalisations of rows: statistics per row, then one pass that applies them.

Statistics are fp32 in fresh memory and come back to their rows by strides of 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from math import prod

from driver.isa import DType
from driver.lower.builder import ProgramBuilder
from driver.lower.convert import as_float, convert
from driver.lower.functions import variant
from driver.lower.reduce import reduce, squared_differences
from driver.lower.registry import LoweringTable, Scalar
from driver.runtime.views import TensorView

TABLE = LoweringTable()
LOWEST = -3.4028234663852886e38
"""The least fp32 number: a peak that −∞ can be subtracted from."""
_EPSILON = 2.0**-23
"""Distance of 1 to the next fp32: what rms_norm adds when no eps is given, for all types."""


def _rows(x: TensorView, dim: int) -> TensorView:
    """x with `dim` innermost."""
    return x.with_last([dim % x.rank]) if x.rank else x.inserted(0)


def _statistic(b: ProgramBuilder, rows: TensorView) -> TensorView:
    """One fp32 per row, of size 1 in the innermost dimension."""
    return b.temp(DType.FP32, (*rows.sizes[:-1], 1))


@TABLE.op("_softmax")
def softmax(
    b: ProgramBuilder, out: TensorView, self: TensorView, dim: int, half_to_float: bool
) -> None:
    """e^(x − max) ÷ Σ e^(x − max); the quotient as a product with 1 ÷ Σ"""
    _softmax(b, out, self, dim, masked=False)


@TABLE.op("_safe_softmax")
def safe_softmax(
    b: ProgramBuilder, out: TensorView, self: TensorView, dim: int, dtype: str | None = None
) -> None:
    """The same, but zeros for a row of nothing but −∞"""
    _softmax(b, out, self, dim, masked=True)


def _softmax(
    b: ProgramBuilder, out: TensorView, self: TensorView, dim: int, *, masked: bool
) -> None:
    x, result = as_float(b, _rows(self, dim)), _rows(out, dim)
    peak, total = _statistic(b, x), _statistic(b, x)
    b.vector("amax", (x,), peak)
    if masked:
        b.vector("clamp", (peak,), peak, LOWEST, math.inf)
    powers = result if result.dtype is DType.FP32 else b.temp(DType.FP32, x.sizes)
    b.vector(variant("exp_difference", out.dtype), (x, peak), powers)
    b.vector("sum", (powers,), total)
    if masked:
        b.vector("reciprocal_or_zero", (total,), total)
    else:
        b.vector("imm_div", (total,), total, 1.0)
    b.vector("mul", (powers, total), result)


@TABLE.op("_log_softmax")
def log_softmax(
    b: ProgramBuilder,
    out: TensorView,
    self: TensorView,
    dim: int,
    half_to_float: bool,
) -> None:
    """x − max − log Σ e^(x − max)"""
    x, result = as_float(b, _rows(self, dim)), _rows(out, dim)
    peak, total = _statistic(b, x), _statistic(b, x)
    b.vector("amax", (x,), peak)
    b.vector("exp_difference_sum", (x, b.expanded(peak, x.sizes)), total)
    b.vector("log", (total,), total)
    b.vector("sub_sub", (x, peak, total), result)


# ---------------------------------------------------------------------- over the last dimensions
def _normalised(b: ProgramBuilder, x: TensorView, shape: Sequence[int]) -> tuple[int, ...]:
    """The dimensions that a normalisation of `shape` covers: x's last."""
    if tuple(x.sizes[x.rank - len(shape) :]) != tuple(shape) or not shape:
        raise b.unsupported("normalized_shape", tuple(shape), f"the last sizes of {x.sizes}")
    return tuple(range(x.rank - len(shape), x.rank))


def _of_nothing(b: ProgramBuilder, mean: TensorView | None, scale: TensorView | None) -> None:
    """The statistics that torch gives for rows without an element."""
    for view, value in ((mean, 0.0), (scale, math.nan)):
        if view is not None:
            b.fill(view, value)


@TABLE.op("native_layer_norm", outputs=3)
def layer_norm(
    b: ProgramBuilder,
    outs: tuple[TensorView | None, ...],
    input: TensorView,
    normalized_shape: tuple[int, ...],
    weight: TensorView | None,
    bias: TensorView | None,
    eps: Scalar,
) -> None:
    """(x − mean) ÷ √(variance + eps) · weight + bias; mean and 1 ÷ √ as second and third"""
    out, mean_out, scale_out = outs
    dims = _normalised(b, input, normalized_shape)
    if not prod(normalized_shape):
        _of_nothing(b, mean_out, scale_out)
        return
    sizes = tuple(1 if at in dims else size for at, size in enumerate(input.sizes))
    scale = b.temp(DType.FP32, sizes)
    means = squared_differences(b, input, scale, dims)
    b.vector("rsqrt_affine", (scale,), scale, 1.0 / prod(normalized_shape), float(eps))
    if out is not None:
        apply_standardised(b, out, (input, means, scale), weight, bias)
    for statistic, view in ((means, mean_out), (scale, scale_out)):
        if view is not None:
            convert(b, statistic, view)


def apply_standardised(
    b: ProgramBuilder,
    out: TensorView,
    standardised: tuple[TensorView, TensorView, TensorView],
    weight: TensorView | None,
    bias: TensorView | None,
) -> None:
    """out = (x − mean)·scale·weight + bias"""
    if weight is None and bias is None:
        b.vector("sub_scale", standardised, out)
        return
    plain = out if out.dtype is DType.FP32 else b.temp(DType.FP32, out.sizes)
    b.vector("sub_scale", standardised, plain)
    if weight is None:
        assert bias is not None
        b.vector("add", (plain, bias), out, 1.0)
    elif bias is None:
        b.vector("mul", (plain, weight), out)
    else:
        b.vector("mul_add", (plain, weight, bias), out)


def _rms_norm(
    b: ProgramBuilder,
    out: TensorView,
    x: TensorView,
    shape: Sequence[int],
    weight: TensorView | None,
    eps: Scalar | None,
) -> TensorView:
    """The result, and 1 ÷ √(mean of squares + eps)."""
    dims = _normalised(b, x, shape)
    scale = b.temp(DType.FP32, [1 if at in dims else n for at, n in enumerate(x.sizes)])
    reduce(b, "sum_squares", x, scale, dims)
    offset = _EPSILON if eps is None else float(eps)
    b.vector("rsqrt_affine", (scale,), scale, 1.0 / max(prod(shape), 1), offset)
    if weight is None:
        b.vector("mul", (x, scale), out)
    else:
        b.vector("mul_mul", (x, scale, weight), out)
    return scale


@TABLE.op("rms_norm")
def rms_norm(
    b: ProgramBuilder,
    out: TensorView,
    input: TensorView,
    normalized_shape: tuple[int, ...],
    weight: TensorView | None = None,
    eps: Scalar | None = None,
) -> None:
    """x ÷ √(mean of squares + eps) · weight"""
    _rms_norm(b, out, input, normalized_shape, weight, eps)


@TABLE.op("_fused_rms_norm", outputs=2)
def fused_rms_norm(
    b: ProgramBuilder,
    outs: tuple[TensorView, TensorView | None],
    input: TensorView,
    normalized_shape: tuple[int, ...],
    weight: TensorView | None,
    eps: Scalar | None,
) -> None:
    """rms_norm, and its 1 ÷ √ as second result"""
    out, scale_out = outs
    scale = _rms_norm(b, out, input, normalized_shape, weight, eps)
    if scale_out is not None:
        convert(b, scale, scale_out)


# ---------------------------------------------------------------------- per group of channels
def channels(view: TensorView, rank: int) -> TensorView:
    """A vector of channels, [C], as [C, 1, …]: beside a tensor of `rank` dimensions."""
    return view.reshaped((*view.sizes, *(1,) * (rank - 2)), (*view.strides, *(0,) * (rank - 2)))


@TABLE.op("native_group_norm", outputs=3)
def group_norm(
    b: ProgramBuilder,
    outs: tuple[TensorView | None, ...],
    input: TensorView,
    weight: TensorView | None,
    bias: TensorView | None,
    N: int,
    C: int,
    HxW: int,
    group: int,
    eps: Scalar,
) -> None:
    """Each group of channels of each image to mean 0 and variance 1; then weight and bias"""
    out, mean_out, scale_out = outs
    if not HxW * C:
        _of_nothing(b, mean_out, scale_out)
        return
    x = input.split(1, (group, C // group))
    dims = tuple(range(2, x.rank))
    scale = b.temp(DType.FP32, (N, group, *(1,) * len(dims)))
    means = squared_differences(b, x, scale, dims)
    b.vector("rsqrt_affine", (scale,), scale, 1.0 / (HxW * C // group), float(eps))
    per_channel = [
        None if view is None else channels(view, input.rank).split(0, (group, C // group))
        for view in (weight, bias)
    ]
    if out is not None:
        target = out.split(1, (group, C // group))
        apply_standardised(b, target, (x, means, scale), per_channel[0], per_channel[1])
    for statistic, view in ((means, mean_out), (scale, scale_out)):
        if view is not None:
            convert(b, statistic.reshaped((N, group), statistic.strides[:2]), view)
