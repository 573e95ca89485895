# SPDX-License-Identifier: Apache-2.0
"""Gradients of activations and of softmax, in fp32 until the last pass."""

from __future__ import annotations

import math
from collections.abc import Callable

from driver.isa import DType
from driver.lower.builder import ProgramBuilder
from driver.lower.convert import number, require_floats
from driver.lower.registry import LoweringTable, RuleFunction, Scalar
from driver.runtime.views import TensorView

TABLE = LoweringTable()


def _temps(b: ProgramBuilder, like: TensorView, count: int) -> tuple[TensorView, ...]:
    return tuple(b.temp(DType.FP32, like.sizes) for _ in range(count))


@TABLE.op("tanh_backward")
def tanh_backward(
    b: ProgramBuilder, out: TensorView, grad_output: TensorView, output: TensorView
) -> None:
    """grad·(1 − y²), the bracket with one rounding"""
    (slope,) = _temps(b, out, 1)
    b.vector("sub_mul", (output, output, number(b, 1.0)), slope)
    b.vector("mul", (grad_output, slope), out)


@TABLE.op("sigmoid_backward")
def sigmoid_backward(
    b: ProgramBuilder, out: TensorView, grad_output: TensorView, output: TensorView
) -> None:
    """grad·(1 − y)·y"""
    (rest,) = _temps(b, out, 1)
    b.vector("affine", (output,), rest, -1.0, 1.0)
    b.vector("mul_mul", (grad_output, rest, output), out)


@TABLE.op("threshold_backward")
def threshold_backward(
    b: ProgramBuilder,
    out: TensorView,
    grad_output: TensorView,
    self: TensorView,
    threshold: Scalar,
) -> None:
    """grad, but 0 where self ≤ threshold"""
    require_floats(b, grad_output, self)
    flat = b.temp(DType.UINT8, out.sizes)
    b.vector("less_equal_imm", (self,), flat, float(threshold))
    b.vector("masked_fill", (grad_output, flat), out, 0.0)


@TABLE.op("silu_backward")
def silu_backward(
    b: ProgramBuilder, out: TensorView, grad_output: TensorView, self: TensorView
) -> None:
    """grad·s·(1 + x·(1 − s)), s = 1 ÷ (1 + e^−x)"""
    s, slope = _temps(b, out, 2)
    b.vector("sigmoid", (self,), s)
    b.vector("linear_part", (self, s, number(b, 1.0)), slope)
    b.vector("mul_mul", (grad_output, s, slope), out)


@TABLE.op("gelu_backward")
def gelu_backward(
    b: ProgramBuilder,
    out: TensorView,
    grad_output: TensorView,
    self: TensorView,
    *,
    approximate: str = "none",
) -> None:
    """grad·(½ + …): the gradient of x·Φ(x), or of its approximation by tanh"""
    slopes = {"none": _gelu_by_erf, "tanh": _gelu_by_tanh}
    if approximate not in slopes:
        raise b.unsupported("approximate", approximate, "none or tanh")
    less_half = slopes[approximate](b, self)
    b.vector("sub_scale", (less_half, number(b, -0.5), grad_output), out)


def _gelu_by_erf(b: ProgramBuilder, x: TensorView) -> TensorView:
    """½·erf(x ÷ √2) + x·e^(−x² ÷ 2) ÷ √(2π)"""
    odd, bell = _temps(b, x, 2)
    b.vector("affine", (x,), odd, math.sqrt(0.5), -0.0)
    b.vector("erf", (odd,), odd)
    b.vector("square", (x,), bell)
    b.vector("exp_scale_difference", (number(b, 0.0), bell), bell, 0.5)
    b.vector("mul", (x, bell), bell)
    b.vector("axpby", (odd, bell), odd, 0.5, 1 / math.sqrt(2 * math.pi))
    return odd


GELU_CUBE = 0.044715
_GELU_SCALE = math.sqrt(2 / math.pi)


def _gelu_by_tanh(b: ProgramBuilder, x: TensorView) -> TensorView:
    """½·t + ½·x·(1 − t²)·z', with z = √(2/π)·(x + 0.044715·x³) and t = tanh z"""
    square, t, rest = _temps(b, x, 3)
    b.vector("square", (x,), square)
    b.vector("affine", (square,), t, _GELU_SCALE * GELU_CUBE, _GELU_SCALE)
    b.vector("mul", (x, t), t)
    b.vector("tanh", (t,), t)
    b.vector("affine", (square,), square, 1.5 * _GELU_SCALE * GELU_CUBE, _GELU_SCALE / 2)
    b.vector("sub_mul", (t, t, number(b, 1.0)), rest)
    b.vector("mul_mul", (x, rest, square), rest)
    b.vector("add", (rest, t), rest, 0.5)
    return rest


# ---------------------------------------------------------------------- softmax
def _of_rows(
    compute: Callable[[ProgramBuilder, TensorView, TensorView, TensorView, TensorView], None],
) -> RuleFunction:
    """A gradient of rows: `compute` gets the gradient, the op's result y and where the gradient
    goes, `dim` innermost, and an fp32 per row."""

    def rule(
        b: ProgramBuilder,
        out: TensorView,
        grad_output: TensorView,
        output: TensorView,
        dim: int,
        input_dtype: str,
    ) -> None:
        grad, y, result = (
            view.with_last([dim % view.rank]) if view.rank else view.inserted(0)
            for view in (grad_output, output, out)
        )
        compute(b, result, grad, y, b.temp(DType.FP32, (*y.sizes[:-1], 1)))

    return rule


def _softmax(
    b: ProgramBuilder, out: TensorView, grad: TensorView, y: TensorView, total: TensorView
) -> None:
    """(grad − Σ grad·y)·y"""
    (product,) = _temps(b, out, 1)
    b.vector("mul", (grad, y), product)
    b.vector("sum", (product,), total)
    b.vector("sub_scale", (grad, total, y), out)


def _log_softmax(
    b: ProgramBuilder, out: TensorView, grad: TensorView, y: TensorView, total: TensorView
) -> None:
    """grad − e^y·Σ grad"""
    (power,) = _temps(b, out, 1)
    b.vector("sum", (grad,), total)
    b.vector("exp", (y,), power)
    b.vector("sub_mul", (power, total, grad), out)


TABLE.op("_softmax_backward_data")(_of_rows(_softmax))
TABLE.op("_log_softmax_backward_data")(_of_rows(_log_softmax))
