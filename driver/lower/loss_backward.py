# SPDX-License-Identifier: Apache-2.0
"""Gradients of losses: of classes one number per target, at the place of its class; of pairs a
difference, limited or divided, times the gradient that comes in and 1 ÷ count for a mean."""

from __future__ import annotations

import math
from collections.abc import Callable

from driver.isa import DType
from driver.lower.builder import ProgramBuilder
from driver.lower.convert import as_type, number, require_floats
from driver.lower.loss import CLASS_DIM, Reduction, places_of, weights_of
from driver.lower.registry import LoweringTable, RuleFunction
from driver.runtime.views import TensorView

TABLE = LoweringTable()
_LEAST_VARIANCE = 1e-12
"""torch's: what the gradient of binary cross entropy is divided by at least."""


def _likelihood(class_dim: Callable[[TensorView], int]) -> RuleFunction:
    """−weight[target]·grad at the class of each target, ÷ the sum of weights for a mean; 0
    elsewhere, and where the target is ignored."""

    def rule(
        b: ProgramBuilder,
        out: TensorView,
        grad_output: TensorView,
        self: TensorView,
        target: TensorView,
        weight: TensorView | None,
        reduction: int,
        ignore_index: int,
        total_weight: TensorView,
    ) -> None:
        require_floats(b, self)
        dim = class_dim(self)
        place, kept = places_of(b, target, self.sizes[dim], ignore_index)
        values = weights_of(b, weight, place, kept)
        b.vector("mul", (values, b.expanded(grad_output, values.sizes)), values)
        b.vector("neg", (values,), values)
        if reduction == Reduction.MEAN:
            b.vector("div", (values, total_weight), values)
        b.vector("where", (kept, values, number(b, 0.0)), values)
        b.fill(out, 0)
        b.scatter(as_type(b, values, out.dtype).inserted(dim), place.inserted(dim), out, dim)

    return rule


# ---------------------------------------------------------------------- of pairs
def _finish(
    b: ProgramBuilder,
    out: TensorView,
    slope: TensorView,
    grad_output: TensorView,
    reduction: int,
    scale: float = 1.0,
) -> None:
    """out = slope·grad·scale, ÷ count for a mean."""
    b.vector("mul", (slope, b.expanded(grad_output, slope.sizes)), slope)
    mean = reduction == Reduction.MEAN and slope.count  # of nothing there is no gradient
    factor = scale / slope.count if mean else scale
    b.vector("affine", (slope,), out, factor, -0.0)


def _apart(b: ProgramBuilder, out: TensorView, x: TensorView, target: TensorView) -> TensorView:
    """x − target in fp32."""
    require_floats(b, x, target)
    found = b.temp(DType.FP32, out.sizes)
    b.vector("add", (x, target), found, -1.0)
    return found


@TABLE.op("mse_loss_backward")
def mse_backward(
    b: ProgramBuilder,
    out: TensorView,
    grad_output: TensorView,
    self: TensorView,
    target: TensorView,
    reduction: int,
) -> None:
    """2·(self − target)·grad"""
    _finish(b, out, _apart(b, out, self, target), grad_output, reduction, 2.0)


@TABLE.op("smooth_l1_loss_backward")
def smooth_l1_backward(
    b: ProgramBuilder,
    out: TensorView,
    grad_output: TensorView,
    self: TensorView,
    target: TensorView,
    reduction: int,
    beta: float,
) -> None:
    """(self − target) ÷ beta within −1 and 1, times grad; without beta −1 up to 0, 1 above, NaN
    stays"""
    slope = _apart(b, out, self, target)
    if beta:
        b.vector("div_imm", (slope,), slope, float(beta))
        b.vector("clamp", (slope,), slope, -1.0, 1.0)
    else:
        above = b.temp(DType.UINT8, out.sizes)
        b.vector("greater_imm", (slope,), above, 0.0)
        sign = b.temp(slope.dtype, out.sizes)
        b.vector("where", (above, number(b, 1.0), number(b, -1.0)), sign)
        same = b.temp(DType.UINT8, out.sizes)
        b.vector("equal", (slope, slope), same)
        b.vector("where", (same, sign, slope), slope)
    _finish(b, out, slope, grad_output, reduction)


@TABLE.op("huber_loss_backward")
def huber_backward(
    b: ProgramBuilder,
    out: TensorView,
    grad_output: TensorView,
    self: TensorView,
    target: TensorView,
    reduction: int,
    delta: float,
) -> None:
    """self − target within −delta and delta, times grad"""
    slope = _apart(b, out, self, target)
    b.vector("clamp", (slope,), slope, -float(delta), float(delta))
    _finish(b, out, slope, grad_output, reduction)


@TABLE.op("binary_cross_entropy_backward")
def binary_cross_entropy_backward(
    b: ProgramBuilder,
    out: TensorView,
    grad_output: TensorView,
    self: TensorView,
    target: TensorView,
    weight: TensorView | None = None,
    reduction: int = 1,
) -> None:
    """(self − target) ÷ max((1 − self)·self, 10⁻¹²), times weight and grad"""
    slope = _apart(b, out, self, target)
    variance = b.temp(DType.FP32, out.sizes)
    b.vector("affine", (self,), variance, -1.0, 1.0)
    b.vector("mul", (self, variance), variance)
    b.vector("clamp", (variance,), variance, _LEAST_VARIANCE, math.inf)
    b.vector("div", (slope, variance), slope)
    if weight is not None:
        b.vector("mul", (slope, weight), slope)
    _finish(b, out, slope, grad_output, reduction)


for _name, _dim in CLASS_DIM.items():
    TABLE.op(f"{_name}_backward")(_likelihood(_dim))
