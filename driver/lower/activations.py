# SPDX-License-Identifier: Apache-2.0
"""Activations of several passes, and their gradients: a choice between two pieces, gates."""

from __future__ import annotations

from driver.isa import DType
from driver.lower.builder import ProgramBuilder
from driver.lower.convert import as_type, is_float, number, require_floats
from driver.lower.registry import LoweringTable, Scalar
from driver.lower.words import fp32
from driver.runtime.views import TensorView

TABLE = LoweringTable()


def _fp32(b: ProgramBuilder, like: TensorView) -> TensorView:
    return b.temp(DType.FP32, like.sizes)


def _truth(b: ProgramBuilder, program: str, x: TensorView, limit: Scalar) -> TensorView:
    """Where x is less than a number and the like."""
    found = b.temp(DType.UINT8, x.sizes)
    b.vector(program, (x,), found, float(limit))
    return found


# ---------------------------------------------------------------------- two pieces
@TABLE.op("leaky_relu", "leaky_relu_")
def leaky_relu(
    b: ProgramBuilder, out: TensorView, self: TensorView, negative_slope: Scalar = 0.01
) -> None:
    """self above 0, negative_slope·self elsewhere"""
    require_floats(b, self)
    _leaky(b, out, self, self, negative_slope)


@TABLE.op("leaky_relu_backward")
def leaky_relu_backward(
    b: ProgramBuilder,
    out: TensorView,
    grad_output: TensorView,
    self: TensorView,
    negative_slope: Scalar,
    self_is_result: bool,
) -> None:
    """grad where self is above 0, negative_slope·grad elsewhere"""
    require_floats(b, grad_output, self)
    _leaky(b, out, grad_output, self, negative_slope)


def _leaky(
    b: ProgramBuilder, out: TensorView, value: TensorView, x: TensorView, slope: Scalar
) -> None:
    scaled = _fp32(b, out)
    b.vector("affine", (value,), scaled, float(slope), -0.0)
    b.vector("where", (_truth(b, "greater_imm", x, 0), value, scaled), out)


@TABLE.op("_prelu_kernel")
def prelu(b: ProgramBuilder, out: TensorView, self: TensorView, weight: TensorView) -> None:
    """self above 0, weight·self elsewhere"""
    require_floats(b, self, weight)
    scaled = _fp32(b, out)
    b.vector("mul", (self, weight), scaled)
    b.vector("where", (_truth(b, "greater_imm", self, 0), self, scaled), out)


@TABLE.op("_prelu_kernel_backward", outputs=2)
def prelu_backward(
    b: ProgramBuilder,
    outs: tuple[TensorView | None, ...],
    grad_output: TensorView,
    self: TensorView,
    weight: TensorView,
) -> None:
    """grad above 0, weight·grad elsewhere; 0 above 0, self·grad elsewhere"""
    require_floats(b, grad_output, self, weight)
    above = _truth(b, "greater_imm", self, 0)
    grad_self, grad_weight = outs
    if grad_self is not None:
        scaled = _fp32(b, grad_self)
        b.vector("mul", (weight, grad_output), scaled)
        b.vector("where", (above, grad_output, scaled), grad_self)
    if grad_weight is not None:
        scaled = _fp32(b, grad_weight)
        b.vector("mul", (self, grad_output), scaled)
        b.vector("where", (above, number(b, 0.0), scaled), grad_weight)


@TABLE.op("elu", "elu_")
def elu(
    b: ProgramBuilder,
    out: TensorView,
    self: TensorView,
    alpha: Scalar = 1,
    scale: Scalar = 1,
    input_scale: Scalar = 1,
) -> None:
    """scale·self above 0, scale·alpha·(e^(input_scale·self) − 1) elsewhere"""
    require_floats(b, self)
    low, high = _fp32(b, out), _fp32(b, out)
    b.vector("affine", (self,), low, float(input_scale), -0.0)
    b.vector("expm1", (low,), low)
    b.vector("affine", (low,), low, _product(alpha, scale), -0.0)
    b.vector("affine", (self,), high, float(scale), -0.0)
    b.vector("where", (_truth(b, "greater_imm", self, 0), high, low), out)


def _product(*factors: Scalar) -> float:
    """Of numbers rounded to fp32, not rounded itself."""
    made = 1.0
    for factor in factors:
        made *= fp32(float(factor))
    return made


@TABLE.op("elu_backward")
def elu_backward(
    b: ProgramBuilder,
    out: TensorView,
    grad_output: TensorView,
    alpha: Scalar,
    scale: Scalar,
    input_scale: Scalar,
    is_result: bool,
    self_or_result: TensorView,
) -> None:
    """grad·scale above 0, grad·input_scale·(y + alpha·scale) elsewhere, y the op's result"""
    x = self_or_result
    require_floats(b, grad_output, x)
    low, high = _fp32(b, out), _fp32(b, out)
    if is_result:
        b.vector("affine", (x,), low, 1.0, _product(alpha, scale))
        factor = float(input_scale)
    else:
        b.vector("affine", (x,), low, float(input_scale), -0.0)
        b.vector("exp", (low,), low)
        factor = _product(input_scale, alpha, scale)
    b.vector("mul", (grad_output, low), low)
    b.vector("affine", (low,), low, factor, -0.0)
    b.vector("affine", (grad_output,), high, float(scale), -0.0)
    b.vector("where", (_truth(b, "less_equal_imm", x, 0), low, high), out)


# ---------------------------------------------------------------------- three pieces
@TABLE.op("hardtanh_backward")
def hardtanh_backward(
    b: ProgramBuilder,
    out: TensorView,
    grad_output: TensorView,
    self: TensorView,
    min_val: Scalar,
    max_val: Scalar,
) -> None:
    """grad between the limits, 0 at and beyond them"""
    require_floats(b, grad_output, self)
    _between(b, out, grad_output, self, (min_val, max_val))


def _between(
    b: ProgramBuilder,
    out: TensorView,
    value: TensorView,
    x: TensorView,
    limits: tuple[Scalar, Scalar],
) -> None:
    inner = _fp32(b, out)
    b.vector("masked_fill", (value, _truth(b, "less_equal_imm", x, limits[0])), inner, 0.0)
    b.vector("masked_fill", (inner, _truth(b, "greater_equal_imm", x, limits[1])), out, 0.0)


@TABLE.op("hardsigmoid_backward")
def hardsigmoid_backward(
    b: ProgramBuilder, out: TensorView, grad_output: TensorView, self: TensorView
) -> None:
    """grad ÷ 6 between −3 and 3, 0 elsewhere"""
    require_floats(b, grad_output, self)
    share = _fp32(b, out)
    b.vector("div_imm", (grad_output,), share, 6.0)
    _between(b, out, share, self, (-3.0, 3.0))


@TABLE.op("hardswish", "hardswish_")
def hardswish(b: ProgramBuilder, out: TensorView, self: TensorView) -> None:
    """self·min(max(self + 3, 0), 6) ÷ 6"""
    require_floats(b, self)
    gate = _fp32(b, out)
    b.vector("affine", (self,), gate, 1.0, 3.0)
    b.vector("clamp", (gate,), gate, 0.0, 6.0)
    b.vector("mul", (self, gate), gate)
    b.vector("div_imm", (gate,), out, 6.0)


@TABLE.op("hardswish_backward")
def hardswish_backward(
    b: ProgramBuilder, out: TensorView, grad_output: TensorView, self: TensorView
) -> None:
    """0 up to −3, grad·(self ÷ 3 + ½) below 3, else grad"""
    require_floats(b, grad_output, self)
    slope = _fp32(b, out)
    b.vector("div_imm", (self,), slope, 3.0)
    b.vector("affine", (slope,), slope, 1.0, 0.5)
    b.vector("mul", (grad_output, slope), slope)
    b.vector("where", (_truth(b, "greater_equal_imm", self, 3), grad_output, slope), slope)
    b.vector("masked_fill", (slope, _truth(b, "less_equal_imm", self, -3)), out, 0.0)


# ---------------------------------------------------------------------- gates
@TABLE.op("softplus_backward")
def softplus_backward(
    b: ProgramBuilder,
    out: TensorView,
    grad_output: TensorView,
    self: TensorView,
    beta: Scalar,
    threshold: Scalar,
) -> None:
    """grad·σ(beta·self); grad where beta·self is above the threshold"""
    require_floats(b, grad_output, self)
    scaled, soft = _fp32(b, out), _fp32(b, out)
    b.vector("affine", (self,), scaled, float(beta), -0.0)
    b.vector("sigmoid", (scaled,), soft)
    b.vector("mul", (grad_output, soft), soft)
    b.vector("where", (_truth(b, "greater_imm", scaled, threshold), grad_output, soft), out)


@TABLE.op("log_sigmoid_forward", outputs=2)
def log_sigmoid(b: ProgramBuilder, outs: tuple[TensorView | None, ...], self: TensorView) -> None:
    """−log(1 + e^−self), and e^−|self| for the gradient"""
    require_floats(b, self)
    out, buffer = outs
    work = _fp32(b, self)
    if out is not None:
        b.vector("neg", (self,), work)
        b.vector("softplus", (work,), work)
        b.vector("neg", (work,), out)
    if buffer is not None:
        b.vector("abs", (self,), work)
        b.vector("neg", (work,), work)
        b.vector("exp", (work,), buffer)


@TABLE.op("log_sigmoid_backward")
def log_sigmoid_backward(
    b: ProgramBuilder,
    out: TensorView,
    grad_output: TensorView,
    self: TensorView,
    buffer: TensorView,
) -> None:
    """grad·z ÷ (1 + z), z = buffer; grad·(1 − that) where self is below 0"""
    require_floats(b, grad_output, self, buffer)
    share, rest = _fp32(b, out), _fp32(b, out)
    b.vector("affine", (buffer,), rest, 1.0, 1.0)
    b.vector("div", (buffer, rest), share)
    b.vector("affine", (share,), rest, -1.0, 1.0)
    b.vector("where", (_truth(b, "less_imm", self, 0), rest, share), share)
    b.vector("mul", (grad_output, share), out)


def _halves(view: TensorView, dim: int) -> tuple[TensorView, TensorView]:
    half = view.sizes[dim] // 2
    return view.sliced(dim, 0, half), view.sliced(dim, half, half)


@TABLE.op("glu")
def glu(b: ProgramBuilder, out: TensorView, self: TensorView, dim: int = -1) -> None:
    """The first half times σ of the second half of a dimension"""
    require_floats(b, self)
    value, gate = _halves(self, dim)
    soft = _fp32(b, out)
    b.vector("sigmoid", (gate,), soft)
    b.vector("mul", (value, soft), out)


@TABLE.op("glu_backward")
def glu_backward(
    b: ProgramBuilder, out: TensorView, grad_output: TensorView, self: TensorView, dim: int
) -> None:
    """grad·σ, and grad·value·σ·(1 − σ) with 1 − σ as σ of the negative gate"""
    require_floats(b, grad_output, self)
    (value, gate), (grad_value, grad_gate) = _halves(self, dim), _halves(out, dim)
    soft, rest = _fp32(b, gate), _fp32(b, gate)
    b.vector("sigmoid", (gate,), soft)
    b.vector("neg", (gate,), rest)
    b.vector("sigmoid", (rest,), rest)
    b.vector("mul", (grad_output, soft), grad_value)
    b.vector("mul_mul", (value, soft, rest), rest)
    b.vector("mul", (grad_output, rest), grad_gate)


@TABLE.op("native_dropout_backward")
def dropout_backward(
    b: ProgramBuilder, out: TensorView, grad_output: TensorView, mask: TensorView, scale: Scalar
) -> None:
    """grad·scale where the mask is set"""
    if not mask.boolean:  # torch multiplies by it
        raise b.unsupported("mask", mask.dtype.name, "truth values")
    grad = grad_output if is_float(grad_output) else as_type(b, grad_output, DType.FP32)
    b.vector("dropout", (grad, mask), out, float(scale))
