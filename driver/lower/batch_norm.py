# SPDX-License-Identifier: Apache-2.0
"""Batch normalisation: by running statistics, or by those of the batch, which then update
the running ones.

Statistics are fp32 in fresh memory, [1, C, 1, …]; running statistics are updated in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from driver.isa import DType
from driver.lower.builder import ProgramBuilder
from driver.lower.convert import as_float, convert
from driver.lower.elementwise import divide_by
from driver.lower.norm import apply_standardised, channels
from driver.lower.reduce import squared_differences
from driver.lower.registry import LoweringTable, Scalar
from driver.lower.words import fp32
from driver.runtime.views import TensorView

TABLE = LoweringTable()
Optional = TensorView | None


@dataclass(frozen=True)
class _Batch:
    """What all batch normalisations are given."""

    x: TensorView
    weight: Optional
    bias: Optional
    mean: Optional
    """Running statistics: what inference uses, and training starts from."""
    variance: Optional
    eps: float


def _infer(b: ProgramBuilder, out: TensorView, call: _Batch) -> None:
    """x·scale + shift with scale = weight ÷ √(variance + eps), shift = bias − mean·scale."""
    mean, variance = call.mean, call.variance
    if mean is None or variance is None:
        raise b.unsupported("running_mean", None, "running statistics, or training")
    scale, shift = b.temp(DType.FP32, mean.sizes), b.temp(DType.FP32, mean.sizes)
    b.vector("rsqrt_affine", (variance,), scale, 1.0, call.eps)
    if call.weight is not None:
        b.vector("mul", (scale, call.weight), scale)
    if call.bias is not None:
        b.vector("sub_mul", (mean, scale, call.bias), shift)
    else:
        b.vector("mul", (mean, scale), shift)
        b.vector("neg", (shift,), shift)
    rank = max(call.x.rank, 2)
    b.vector("mul_add", (call.x, channels(scale, rank), channels(shift, rank)), out)


def _train(
    b: ProgramBuilder,
    outs: Sequence[Optional],
    call: _Batch,
    moved: tuple[Optional, Optional],
    momentum: float,
) -> None:
    """(x − mean)·r·weight + bias by the batch's own statistics; `outs`: that, mean, r.

    `moved`: where the running mean and variance go, the variance as Σ(x − mean)² ÷ (count − 1).
    """
    x = as_float(b, call.x)
    dims = (0, *range(2, x.rank))
    sizes = tuple(1 if at in dims else size for at, size in enumerate(x.sizes))
    count = x.count // max(x.sizes[1], 1)
    scale = b.temp(DType.FP32, sizes)
    mean = squared_differences(b, x, scale, dims)
    momentum = fp32(momentum)  # as torch takes it, before it takes 1 − momentum
    if moved[1] is not None:
        unbiased = b.temp(DType.FP32, sizes)
        divide_by(b, scale, unbiased, count - 1)
    for old, new, fresh in zip((call.mean, call.variance), moved, (mean, None), strict=True):
        if old is not None and new is not None:
            current = _line(fresh if fresh is not None else unbiased)
            b.vector("axpby", (old, current), new, 1.0 - momentum, momentum)
    b.vector("rsqrt_affine", (scale,), scale, 1.0 / count, call.eps)
    out, *saved = outs[:3]
    if out is not None:
        weight, bias = (
            None if view is None else channels(view, x.rank) for view in (call.weight, call.bias)
        )
        apply_standardised(b, out, (x, mean, scale), weight, bias)
    for statistic, view in zip((mean, scale), saved, strict=True):
        if view is not None:
            convert(b, _line(statistic), view)


def _line(statistic: TensorView) -> TensorView:
    """[1, C, 1, …] as [C]."""
    return statistic.reshaped(statistic.sizes[1:2], statistic.strides[1:2])


@TABLE.op("native_batch_norm", "_native_batch_norm_legit", outputs=3)
def native_batch_norm(
    b: ProgramBuilder,
    outs: tuple[TensorView | None, ...],
    input: TensorView,
    weight: TensorView | None,
    bias: TensorView | None,
    running_mean: TensorView | None,
    running_var: TensorView | None,
    training: bool,
    momentum: Scalar,
    eps: Scalar,
) -> None:
    """In training by the batch, and the running statistics in place; else by these, the saved
    ones staying empty"""
    call = _Batch(input, weight, bias, running_mean, running_var, float(eps))
    if training:
        _train(b, outs, call, (running_mean, running_var), float(momentum))
    elif outs[0] is not None:
        _infer(b, outs[0], call)


@TABLE.op("_native_batch_norm_legit.no_stats", outputs=3)
def batch_norm_no_stats(
    b: ProgramBuilder,
    outs: tuple[TensorView | None, ...],
    input: TensorView,
    weight: TensorView | None,
    bias: TensorView | None,
    training: bool,
    momentum: Scalar,
    eps: Scalar,
) -> None:
    """The same without running statistics"""
    native_batch_norm(b, outs, input, weight, bias, None, None, training, momentum, eps)


@TABLE.op("_native_batch_norm_legit_functional", outputs=5)
def batch_norm_functional(
    b: ProgramBuilder,
    outs: tuple[TensorView | None, ...],
    input: TensorView,
    weight: TensorView | None,
    bias: TensorView | None,
    running_mean: TensorView,
    running_var: TensorView,
    training: bool,
    momentum: Scalar,
    eps: Scalar,
) -> None:
    """The same with the new running statistics as fourth and fifth result"""
    call = _Batch(input, weight, bias, running_mean, running_var, float(eps))
    moved = (outs[3], outs[4])
    if training:
        _train(b, outs, call, moved, float(momentum))
        return
    if outs[0] is not None:
        _infer(b, outs[0], call)
    for old, new in zip((running_mean, running_var), moved, strict=True):
        if new is not None:
            convert(b, old, new)


@TABLE.op("_batch_norm_with_update", outputs=4)
def batch_norm_with_update(
    b: ProgramBuilder,
    outs: tuple[TensorView | None, ...],
    input: TensorView,
    weight: TensorView | None,
    bias: TensorView | None,
    running_mean: TensorView,
    running_var: TensorView,
    momentum: Scalar,
    eps: Scalar,
) -> None:
    """Training; the fourth result, room for a backward pass, is empty on the CPU"""
    native_batch_norm(b, outs, input, weight, bias, running_mean, running_var, True, momentum, eps)


@TABLE.op("_native_batch_norm_legit_no_training", outputs=3)
def batch_norm_no_training(
    b: ProgramBuilder,
    outs: tuple[TensorView | None, ...],
    input: TensorView,
    weight: TensorView | None,
    bias: TensorView | None,
    running_mean: TensorView,
    running_var: TensorView,
    momentum: Scalar,
    eps: Scalar,
) -> None:
    """Inference"""
    native_batch_norm(b, outs, input, weight, bias, running_mean, running_var, False, momentum, eps)
