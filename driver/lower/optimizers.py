# SPDX-License-Identifier: Apache-2.0
"""What optimizers do with gradients: one parameter's step in as few passes as there are results.

A pass writes one tensor and reads three at most, so a step that writes n tensors has at least n
passes. Adam has one more, for the denominator: its bias corrections follow from a tensor, the
number of the step, and a pass takes only four numbers besides its three tensors. Moments of 16 bits
are stored by passes of their own, after the step.
"""

from __future__ import annotations

import math

from driver.isa import DType
from driver.lower.builder import ProgramBuilder
from driver.lower.convert import convert, require_floats
from driver.lower.reduce import reduce, with_kept_dims
from driver.lower.registry import LoweringTable, Scalar
from driver.lower.words import fp32
from driver.runtime.views import TensorView

TABLE = LoweringTable()
_HALF = 0.5
"""From this weight on, of either sign, torch starts from the other end."""
_LARGEST_NUMBER = 0x7F7F_FFFF
"""The bits of the largest fp32 number; those of infinity and NaN are greater."""


@TABLE.op("lerp.Scalar", "lerp_.Scalar")
def lerp(
    b: ProgramBuilder, out: TensorView, self: TensorView, end: TensorView, weight: Scalar
) -> None:
    """self + weight·(end − self)"""
    require_floats(b, self, end)
    weight = fp32(float(weight))
    if abs(weight) < _HALF:
        b.vector("lerp", (self, end), out, weight, 1.0)
    else:
        b.vector("lerp", (end, self), out, fp32(1.0 - weight), 1.0)


@TABLE.op("lerp.Tensor", "lerp_.Tensor")
def lerp_by_tensor(
    b: ProgramBuilder, out: TensorView, self: TensorView, end: TensorView, weight: TensorView
) -> None:
    """self + weight·(end − self), element by element"""
    require_floats(b, self, end, weight)
    apart, near, far = (b.temp(DType.FP32, out.sizes) for _ in range(3))
    small = b.temp(DType.UINT8, weight.sizes)
    size = b.temp(DType.FP32, weight.sizes)
    b.vector("abs", (weight,), size)
    b.vector("less_imm", (size,), small, _HALF)
    b.vector("add", (self, end), apart, -1.0)
    b.vector("sub_mul", (weight, apart, self), near)
    b.vector("linear_part", (apart, weight, end), far)
    b.vector("where", (small, near, far), out)


@TABLE.op("addcdiv", "addcdiv_")
def addcdiv(
    b: ProgramBuilder,
    out: TensorView,
    self: TensorView,
    tensor1: TensorView,
    tensor2: TensorView,
    *,
    value: Scalar = 1,
) -> None:
    """self + value·(tensor1 ÷ tensor2)"""
    require_floats(b, self, tensor1, tensor2)
    b.vector("addcdiv", (self, tensor1, tensor2), out, float(value))


# ---------------------------------------------------------------------- stochastic gradient descent
def _sign(maximize: bool) -> float:
    return -1.0 if maximize else 1.0


@TABLE.op("npu.sgd_")
def sgd(
    b: ProgramBuilder,
    out: TensorView,
    self: TensorView,
    grad: TensorView,
    *,
    lr: Scalar,
    weight_decay: Scalar,
    maximize: bool,
) -> None:
    """self − lr·g, g = ±grad + weight_decay·self"""
    require_floats(b, self, grad)
    if weight_decay:
        imms = (-float(lr), float(weight_decay), _sign(maximize))
        b.vector("decayed_sgd", (self, grad), out, *imms)
    else:
        b.vector("add", (self, grad), out, -float(lr) * _sign(maximize))


@TABLE.op("npu.sgd_momentum_", outputs=2)
def sgd_with_momentum(
    b: ProgramBuilder,
    outs: tuple[TensorView, TensorView],
    self: TensorView,
    grad: TensorView,
    momentum_buffer: TensorView,
    *,
    lr: Scalar,
    momentum: Scalar,
    dampening: Scalar,
    weight_decay: Scalar,
    nesterov: bool,
    maximize: bool,
    is_first_step: bool,
) -> None:
    """buffer = momentum·buffer + (1 − dampening)·g, at first g; self − lr·buffer, with `nesterov`
    self − lr·(g + momentum·buffer)"""
    require_floats(b, self, grad, momentum_buffer)
    out, buffer = outs
    decay, sign = float(weight_decay), _sign(maximize)
    factors = (float(momentum), 1.0 - dampening)
    if is_first_step and decay:  # the buffer holds nothing yet
        b.vector("axpby", (grad, self), buffer, sign, decay)
    elif is_first_step:
        b.vector("affine", (grad,), buffer, sign, -0.0)
    elif decay:
        sources = (momentum_buffer, grad, self)
        b.vector("decayed_momentum", sources, buffer, *factors, decay, sign)
    else:
        b.vector("axpby", (momentum_buffer, grad), buffer, factors[0], factors[1] * sign)
    rate = -float(lr)
    if nesterov and decay:
        b.vector("decayed_nesterov", (self, grad, buffer), out, rate, factors[0], decay, sign)
    elif nesterov:
        b.vector("nesterov", (self, grad, buffer), out, rate, factors[0], sign)
    else:
        b.vector("add", (self, buffer), out, rate)


# ---------------------------------------------------------------------- Adam
def _corrections(
    b: ProgramBuilder, step: TensorView, lr: Scalar, betas: tuple[Scalar, Scalar]
) -> tuple[TensorView, TensorView]:
    """(1 ÷ √(1 − beta2^step), lr ÷ (1 − beta1^step)), by expm1, which keeps what 1 − … loses."""
    logs = [math.log(beta) if beta > 0 else -math.inf for beta in betas]
    powers, root, rate = (b.temp(DType.FP32, sizes) for sizes in ((2,), (), ()))
    b.vector("mul", (step.reshaped((1,), (1,)), b.table(DType.FP32, logs)), powers)
    b.vector("expm1", (powers,), powers)
    first, second = (powers.selected(0, at) for at in (0, 1))
    b.vector("rsqrt_affine", (second,), root, -1.0, 0.0)
    b.vector("imm_div", (first,), rate, -float(lr))
    return root, rate


def _moments(
    b: ProgramBuilder,
    outs: tuple[TensorView, TensorView],
    given: tuple[TensorView, TensorView, TensorView, TensorView],
    betas: tuple[Scalar, Scalar],
    decay: float,
    sign: float,
) -> None:
    """Running means of g and g², in outs; `given`: self, grad and the means so far."""
    self, grad, mean, square = given
    new_mean, new_square = outs
    first, second = 1.0 - betas[0], (float(betas[1]), 1.0 - betas[1])
    if decay:
        b.vector("decayed_lerp", (mean, grad, self), new_mean, first, decay, sign)
        b.vector("decayed_mean_square", (square, grad, self), new_square, *second, decay, sign)
    else:
        b.vector("lerp", (mean, grad), new_mean, first, sign)
        b.vector("mean_square", (square, grad), new_square, *second)


@TABLE.op("npu.adam_", outputs=3)
def adam(
    b: ProgramBuilder,
    outs: tuple[TensorView, TensorView, TensorView],
    self: TensorView,
    grad: TensorView,
    exp_avg: TensorView,
    exp_avg_sq: TensorView,
    step: TensorView,
    *,
    lr: Scalar,
    beta1: Scalar,
    beta2: Scalar,
    weight_decay: Scalar,
    eps: Scalar,
    maximize: bool,
    decoupled: bool,
) -> None:
    """m, v: running means of g and g²; self − lr·m̂ ÷ (√v̂ + eps), m̂ and v̂ without their bias.
    Decoupled: self·(1 − lr·weight_decay) instead, and g without decay"""
    require_floats(b, self, grad, exp_avg, exp_avg_sq, step)
    out, *moments = outs
    decay = 0.0 if decoupled else float(weight_decay)
    state = (self, grad, exp_avg, exp_avg_sq)
    mean, square = exact = [_unrounded(b, moment) for moment in moments]
    _moments(b, (mean, square), state, (beta1, beta2), decay, _sign(maximize))
    keep = 1.0 - lr * weight_decay if decoupled else 1.0
    scales = _corrections(b, step, lr, (beta1, beta2))
    _apply(b, out, self, (mean, square), scales, (float(eps), keep))
    _store(b, exact, moments)


@TABLE.op("npu.amsgrad_", outputs=4)
def amsgrad(
    b: ProgramBuilder,
    outs: tuple[TensorView, TensorView, TensorView, TensorView],
    self: TensorView,
    grad: TensorView,
    exp_avg: TensorView,
    exp_avg_sq: TensorView,
    max_exp_avg_sq: TensorView,
    step: TensorView,
    *,
    lr: Scalar,
    beta1: Scalar,
    beta2: Scalar,
    weight_decay: Scalar,
    eps: Scalar,
    maximize: bool,
    decoupled: bool,
) -> None:
    """As adam_, with the largest v so far in place of v"""
    require_floats(b, self, grad, exp_avg, exp_avg_sq, max_exp_avg_sq, step)
    out, *moments = outs
    decay = 0.0 if decoupled else float(weight_decay)
    state = (self, grad, exp_avg, exp_avg_sq)
    mean, square, largest = exact = [_unrounded(b, moment) for moment in moments]
    _moments(b, (mean, square), state, (beta1, beta2), decay, _sign(maximize))
    b.vector("maximum", (max_exp_avg_sq, square), largest)
    keep = 1.0 - lr * weight_decay if decoupled else 1.0
    scales = _corrections(b, step, lr, (beta1, beta2))
    _apply(b, out, self, (mean, largest), scales, (float(eps), keep))
    _store(b, exact, moments)


def _unrounded(b: ProgramBuilder, moment: TensorView) -> TensorView:
    """Where a moment is computed: a square that 16 bits round to 0 is no divisor, so the step takes
    the moments as they are before they are stored, as torch's fused kernel does."""
    return moment if moment.dtype is DType.FP32 else b.temp(DType.FP32, moment.sizes)


def _store(b: ProgramBuilder, exact: list[TensorView], moments: list[TensorView]) -> None:
    for computed, moment in zip(exact, moments, strict=True):
        if computed is not moment:
            convert(b, computed, moment)


def _apply(
    b: ProgramBuilder,
    out: TensorView,
    self: TensorView,
    moments: tuple[TensorView, TensorView],
    scales: tuple[TensorView, TensorView],
    numbers: tuple[float, float],
) -> None:
    """out = keep·self − rate·m ÷ (√v·root + eps); `numbers`: eps and keep."""
    mean, square = moments
    divisor = b.temp(DType.FP32, out.sizes)
    b.vector("root_over", (square, *scales), divisor, numbers[0])
    b.vector("keep_sub_quotient", (self, mean, divisor), out, numbers[1])


# ---------------------------------------------------------------------- gradient scaling
@TABLE.op("npu.unscale_", outputs=2)
def unscale(
    b: ProgramBuilder,
    outs: tuple[TensorView, TensorView],
    self: TensorView,
    found_inf: TensorView,
    inv_scale: TensorView,
) -> None:
    """self·inv_scale; found_inf becomes 1 if an element of self is no number"""
    require_floats(b, self, found_inf, inv_scale)
    out, found = outs
    if not self.count:
        convert(b, found_inf, found)
        return
    bits, no_number = (b.temp(DType.INT32, found.sizes) for _ in range(2))
    x, peak, dims = with_kept_dims(self, bits, None, False)
    reduce(b, "largest_bits", x, peak, dims)
    b.vector("int_greater_imm", (bits,), no_number, _LARGEST_NUMBER)
    flag = b.temp(DType.FP32, found.sizes)
    b.vector("int_to_float", (no_number,), flag)
    b.vector("maximum", (found_inf, flag), found)
    b.vector("mul", (self, inv_scale), out)


@TABLE.op("_amp_update_scale_")
def update_scale(
    b: ProgramBuilder,
    out: TensorView,
    self: TensorView,
    growth_tracker: TensorView,
    found_inf: TensorView,
    scale_growth_factor: Scalar,
    scale_backoff_factor: Scalar,
    growth_interval: int,
) -> None:
    """Less after an infinity; more after so many steps without one, while that is finite"""
    require_floats(b, self, found_inf)
    steps, full, fits, grows, failed = (b.temp(DType.INT32, self.sizes) for _ in range(5))
    b.vector("float_truth", (found_inf,), failed)
    b.vector("int_affine", (growth_tracker,), steps, 1, 1)
    b.vector("int_equal_imm", (steps,), full, growth_interval)
    grown, less = (b.temp(DType.FP32, self.sizes) for _ in range(2))
    b.vector("affine", (self,), grown, float(scale_growth_factor), -0.0)
    b.vector("affine", (self,), less, float(scale_backoff_factor), -0.0)
    b.vector("less_imm", (grown,), fits, math.inf)
    b.vector("logical_and", (full, fits), grows)
    b.vector("where", (grows, grown, self), grown)
    b.vector("where", (failed, less, grown), out)
    b.vector("masked_fill", (steps, full), steps, 0)
    b.vector("masked_fill", (steps, failed), growth_tracker, 0)
