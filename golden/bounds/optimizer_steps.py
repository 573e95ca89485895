# SPDX-License-Identifier: Apache-2.0
"""One parameter's step of SGD and Adam, and what scales gradients.

True values are float64's by the formulas below, from the optimizer's own numbers, which both sides
round to fp32. e(x) is the error of x, U and TINY as in golden.bounds.expectation. Counts are those
of sums and products rounded one by one, as torch has them; the NPU has fused ones, and so fewer.

g = ±grad + d·p (d: the decay, unless decoupled): d, the product and the sum round,
    e(g) = 3·U·G + 2·TINY with G = |grad| + |d·p|; no error without decay.
SGD: b = μ·b₀ + w·g: μ, w, both products and the sum, e(b) = w·e(g) + 4·U·B + 3·TINY with
    B = |μ·b₀| + w·G. The step n is g, b, or g + μ·b: e(n) = e(g) + μ·e(b) + 4·U·(G + μ·B) + TINY.
    p − lr·n: lr·e(n) + 3·U·(|p| + lr·N) + 2·TINY.
Adam: m = m₀ + w·(g − m₀), or from the other end:
    e(m) = w·e(g) + 8·U·(|m₀| + w·(G + |m₀|)) + 4·TINY.
    v = β·v₀ + w·g²: e(v) = w·(2·G·e(g) + e(g)²) + 6·U·(β·v₀ + w·G²) + TINY·(4 + G).
    1 − β^t is −expm1(t·ln β): ln β and the product round, which changes it by at most as large a
    fraction since |x·eˣ/(eˣ − 1)| ≤ 1 for x < 0, and expm1 has 2 ULP: 7·U. Its root's reciprocal r
    has 3.5·U and two roundings: 6·U; rate = lr ÷ (1 − β₁^t) has 7·U, lr and the quotient: 9·U.
    D = √v·r + eps: e(D) = r·δ + 12·U·D + 2·TINY, δ the distance of √v from the farther one of
    √(v − e(v)) and √(v + e(v)).
    q = rate·m ÷ D: with D₀ = D − e(D) and |m| + e(m), against |m|/D, and 12·U of it for rate and
    two quotients. D ÷ rate may leave the range of fp32: upwards q is then 0, below |m|·2^-127;
    downwards it has the absolute error TINY. D₀ ≤ 0: nothing is claimed.
    keep·p − q: e(q) + 4·U·(|p| + q) + 3·TINY.
With SGD p is computed from b as it is stored: a 16-bit type adds its rounding to its error, and
where it cannot hold it nothing is claimed of p. With Adam it is computed from m and v before they
are rounded to be stored.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from driver.runtime.torch_types import NPU_TYPES
from golden.bounds.expectation import FLUSH, TINY, Expectation, Rule, Subject, U, exact, near, ulp
from golden.calls import OpCall
from golden.formats import FLOAT_FORMATS, Floats
from golden.tensors import values_of


@dataclass(frozen=True)
class _Quantity:
    """A value on the way: true, an upper bound of its terms' magnitudes, and its error."""

    true: Floats
    size: Floats
    error: Floats

    def stored(self, dtype: torch.dtype) -> _Quantity:
        """The same, read back from a tensor of that type."""
        if dtype == torch.float32:
            return self
        form, reach = NPU_TYPES[dtype], self.size + self.error
        error = self.error + ulp(reach, form) / 2
        error = np.where(reach < FLOAT_FORMATS[form].max_finite, error, np.inf)
        return _Quantity(self.true, self.size, error)


def _floats(call: OpCall, name: str) -> Floats:
    return values_of(call[name]).astype(np.float64)


def _finite(x: Floats) -> Floats:
    return np.where(np.isfinite(x), np.abs(x), 0.0)


def _gradient(call: OpCall, decay: float) -> _Quantity:
    grad, parameter = _floats(call, "grad"), _floats(call, "self")
    ascent = -grad if call["maximize"] else grad
    if not decay:
        return _Quantity(ascent, _finite(grad), np.zeros_like(grad))
    size = _finite(grad) + abs(decay) * _finite(parameter)
    return _Quantity(ascent + decay * parameter, size, 3 * U * size + 2 * TINY)


# ---------------------------------------------------------------------- stochastic gradient descent
def _momentum(call: OpCall, grad: _Quantity) -> _Quantity:
    """The buffer."""
    if call["is_first_step"]:
        return grad
    before = _floats(call, "momentum_buffer")
    beta, weight = call["momentum"], 1 - call["dampening"]
    size = abs(beta) * _finite(before) + abs(weight) * grad.size
    error = abs(weight) * grad.error + 4 * U * size + 3 * TINY
    return _Quantity(beta * before + weight * grad.true, size, error)


def _descended(call: OpCall, step: _Quantity) -> Expectation:
    parameter, rate = _floats(call, "self"), abs(call["lr"])
    size = _finite(parameter) + rate * step.size
    error = rate * step.error + 3 * U * size + 2 * TINY
    peak = np.maximum(size, step.size)
    return near(call["self"].dtype, parameter - call["lr"] * step.true, error, peak=peak)


def _sgd(subject: Subject) -> tuple[Expectation | None, ...]:
    call = subject.call
    return (_descended(call, _gradient(call, call["weight_decay"])),)


def _sgd_momentum(subject: Subject) -> tuple[Expectation | None, ...]:
    call = subject.call
    grad = _gradient(call, call["weight_decay"])
    buffer = _momentum(call, grad)
    dtype = call["momentum_buffer"].dtype
    written = near(dtype, buffer.true, buffer.error, peak=buffer.size)
    buffer, beta = buffer.stored(dtype), call["momentum"]
    step = buffer
    if call["nesterov"]:
        size = grad.size + abs(beta) * buffer.size
        error = grad.error + abs(beta) * buffer.error + 4 * U * size + TINY
        step = _Quantity(grad.true + beta * buffer.true, size, error)
    return _descended(call, step), written


# ---------------------------------------------------------------------- Adam
def _mean(call: OpCall, grad: _Quantity) -> _Quantity:
    before, weight = _floats(call, "exp_avg"), 1 - call["beta1"]
    size = _finite(before) + weight * (grad.size + _finite(before))
    error = weight * grad.error + 8 * U * size + 4 * TINY
    return _Quantity(before + weight * (grad.true - before), size, error)


def _mean_square(call: OpCall, grad: _Quantity) -> _Quantity:
    before, beta = _floats(call, "exp_avg_sq"), call["beta2"]
    weight = 1 - beta
    size = beta * _finite(before) + weight * grad.size**2
    carried = weight * (2 * grad.size * grad.error + grad.error**2)
    error = carried + 6 * U * size + TINY * (4 + grad.size)
    return _Quantity(beta * before + weight * grad.true**2, size, error)


def _quotient(call: OpCall, mean: _Quantity, square: _Quantity) -> _Quantity:
    """rate·m ÷ D"""
    step = float(call["step"])
    first, second = (
        -math.expm1(step * math.log(beta)) if beta else 1.0
        for beta in (call["beta1"], call["beta2"])
    )
    rate, root = call["lr"] / first, 1 / math.sqrt(second)
    middle = np.sqrt(square.true)
    above = np.sqrt(square.true + square.error) - middle
    below = middle - np.sqrt(np.maximum(square.true - square.error, 0.0))
    divisor = middle * root + call["eps"]
    lost = root * np.maximum(above, below) + 12 * U * divisor + 2 * TINY
    least = divisor - lost
    true = rate * mean.true / divisor
    size = _finite(true)
    largest = np.abs(mean.true) + mean.error
    error = np.where(least > 0, abs(rate) * largest / np.where(least > 0, least, 1.0), np.inf)
    error = error - size + 12 * U * np.where(np.isfinite(error), error, 0.0)
    error = error + largest * FLUSH / 2 + size * TINY * abs(rate) / np.maximum(divisor, TINY) + TINY
    return _Quantity(true, size, error)


def _adam(subject: Subject) -> tuple[Expectation | None, ...]:
    call = subject.call
    decoupled = call["decoupled"]
    with np.errstate(all="ignore"):
        grad = _gradient(call, 0.0 if decoupled else call["weight_decay"])
        mean, square = _mean(call, grad), _mean_square(call, grad)
        peak = np.maximum(grad.size**2, np.maximum(mean.size, square.size))
        state = [near(call["exp_avg"].dtype, mean.true, mean.error, peak=peak)]
        state.append(near(call["exp_avg_sq"].dtype, square.true, square.error, peak=peak))
        if "max_exp_avg_sq" in call.arguments:
            before = _floats(call, "max_exp_avg_sq")
            true, size = np.maximum(before, square.true), np.maximum(before, square.size)
            square = _Quantity(true, size, square.error)
            state.append(near(call["max_exp_avg_sq"].dtype, true, square.error, peak=peak))
        update = _quotient(call, mean, square)
        keep = 1 - call["lr"] * call["weight_decay"] if decoupled else 1.0
        parameter = _floats(call, "self")
        size = abs(keep) * _finite(parameter) + update.size
        error = update.error + 4 * U * size + 3 * TINY
        true = keep * parameter - update.true
        return near(call["self"].dtype, true, error, peak=np.maximum(size, peak)), *state


# ---------------------------------------------------------------------- gradient scaling
def _unscale(subject: Subject) -> tuple[Expectation | None, ...]:
    """A product of two fp32 numbers is exact in float64."""
    call = subject.call
    given = _floats(call, "self")
    found = torch.ones_like(call["found_inf"])
    if np.isfinite(given).all():
        found = torch.clamp_min(call["found_inf"], 0)
    with np.errstate(all="ignore"):
        true = given * float(call["inv_scale"])
    return near(call["self"].dtype, true, 0.0), exact(found)


def _update_scale(subject: Subject) -> tuple[Expectation | None, ...]:
    """The factor and the product round."""
    call = subject.call
    steps, scale = int(call["growth_tracker"]) + 1, float(call["self"])
    full = steps == call["growth_interval"]
    if float(call["found_inf"]):
        scale, steps = scale * call["scale_backoff_factor"], 0
    elif full:
        grown, steps = scale * call["scale_growth_factor"], 0
        scale = scale if not math.isfinite(float(np.float32(grown))) else grown
    true = np.full(tuple(call["self"].shape), scale)
    error = 2 * U * np.abs(true) + TINY
    tracker = torch.full_like(call["growth_tracker"], steps)
    return near(call["self"].dtype, true, error, peak=np.abs(true)), exact(tracker)


RULES: dict[str, Rule] = {
    "npu.sgd": _sgd,
    "npu.sgd_momentum": _sgd_momentum,
    "npu.adam": _adam,
    "npu.amsgrad": _adam,
    "npu.unscale": _unscale,
    "_amp_update_scale": _update_scale,
}
