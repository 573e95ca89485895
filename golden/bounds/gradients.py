# SPDX-License-Identifier: Apache-2.0
"""Gradients of activations and of softmax. g the incoming gradient, y the op's own result.

To first order, each rounding u of what it rounds; what is left out is covered by GROWN. A function
of 2 ULP is within 4u of itself (an ULP is at most 2u of a normal number, 2^-149 below).

*tanh*: 1 − y² is one rounding (fma) of exact operands, the product another: 2u of the result. torch
rounds y² too: u·|g|·y². *sigmoid*: 1 − y and two products: 3u. *threshold*: bits are moved.

*silu*: g·s·t with s = σ(x), t = 1 + x·(1 − s). δs = 4u·s; 1 − s is off by δs + u·(1 − s), and t by
|x| times that and u·|t|. Two products more: |g|·(s·δt + |t|·δs + 2u·s·|t|).

*gelu by erf*: g·(a + b + ½) with a = ½·erf(x/√2), b = x·e^(−x²/2)/√(2π). x/√2 is off by 2u (factor
and product), which moves erf by 2u·|z|·2/√π·e^(−z²); erf has 4u: together δa. The square's
rounding moves the exponential by u·x²/2, exp has 4u, the factor and two products 3u: δb = (u·x²/2
+ 7u)·|b|. The three sums and products: u·(|a| + |a + b| + |a + b + ½|) and u of the result.

*gelu by tanh*: z = x·(c₁x² + c₀): two factors, square, sum and product, 5u of |z| (all terms of
the sum are positive). So δt = 5u·|z|·(1 − t²) + 4u·|t|, and δ(1 − t²) = 2·|t|·δt + u·(1 − t²). With
z'/2, off by 4u, r = x·(1 − t²)·z'/2 is off by |x·z'/2|·δ(1 − t²) + 6u·|r|. Then as above.

*softmax*: (g − Σ g·y)·y. The products round once, the sum n times: γ_{n+1}·Σ|g·y| = δ. The
difference and the product: |y|·(δ + 2u·|g − Σ|).

*log_softmax*: g − e^y·Σ g: e^y within 4u, δ = γ_n·Σ|g|: e^y·(δ + 4u·|Σ|), and a rounding of the
result.

torch computes the same formulas: in fp32 with functions of up to 4 ULP and sums in any order,
TORCH times the bound, and three roundings to a 16-bit type. Where something on the way exceeds the
largest fp32 number nothing is claimed (`peak`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from golden.bounds.elementwise import true_of
from golden.bounds.exact import moved
from golden.bounds.expectation import (
    FLUSH,
    TINY,
    Expectation,
    Rule,
    Subject,
    U,
    gamma,
    is_short,
    least,
    near,
    torch_open,
    unclaimed,
    unit,
)
from golden.bounds.reductions import chain_roundings, finite
from golden.calls import OpCall
from golden.functions import TANH_END
from golden.tensors import values_of

Tensor = torch.Tensor
GROWN = 1 + 64 * U
"""Covers products of errors: none of the bounds is more than 64u of what it is relative to."""
TORCH = 4.0
_FUNCTION = 4 * U


@dataclass(frozen=True)
class _Slope:
    """What g is multiplied by, in float64."""

    value: Tensor
    npu: Tensor
    """Its absolute error."""
    torch: Tensor
    """What torch's may be beyond TORCH times it."""
    peak: Tensor
    """The largest magnitude on the way to it."""


def _by_slope(slope: Callable[[OpCall], _Slope], steps: int) -> Rule:
    """g·slope, with that many roundings after the slope's own."""

    def rule(subject: Subject) -> tuple[Expectation | None, ...]:
        call, dtype = subject.call, subject.answer().dtype
        g, made = finite(call["grad_output"]).abs(), slope(call)
        size = g * made.value.abs()
        own = (g * made.npu + steps * U * size) * GROWN + TINY * (2 + g + made.peak)
        other = TORCH * own + g * (made.torch + FLUSH) + FLUSH
        if is_short(dtype):
            other = other + 3 * unit(dtype) * (size + g * made.npu / U)
            other = other + least(dtype) * (2 + made.peak)
        peak = torch.maximum(made.peak * torch.clamp(g, min=1.0), size)
        true = true_of(subject)
        npu, far, top = (values_of(torch.broadcast_to(x, true.shape)) for x in (own, other, peak))
        limit = top if is_short(dtype) else 0.0
        result = near(dtype, true, npu, far, peak=top, torch_peak=limit)
        # An infinite g times a slope that may be 0, or of the other sign.
        infinite = torch.from_numpy(np.asarray(np.isinf(true)))
        lost, of_torch = (
            (infinite & (made.value.abs() <= error + FLUSH)).numpy()
            for error in (2 * made.npu, TORCH * made.npu + made.torch)
        )
        return (torch_open(unclaimed(result, lost), of_torch),)

    return rule


def _tanh(call: OpCall) -> _Slope:
    y = finite(call["output"])
    slope = 1 - y * y
    return _Slope(slope, 0 * y, U * y * y, 1 + y * y)


def _sigmoid(call: OpCall) -> _Slope:
    y = finite(call["output"])
    return _Slope((1 - y) * y, 0 * y, 0 * y, (1 + y.abs()) * torch.clamp(y.abs(), min=1.0))


def _silu(call: OpCall) -> _Slope:
    x = finite(call["self"])
    s = torch.sigmoid(x)
    t = 1 + x * (1 - s)
    off_s = _FUNCTION * s + 2 * TINY
    off_t = x.abs() * (off_s + U * (1 - s)) + U * t.abs()
    error = s * off_t + t.abs() * off_s
    return _Slope(s * t, error, FLUSH * t.abs(), 1 + x.abs())


def _gelu(call: OpCall) -> _Slope:
    x = finite(call["self"])
    return (_by_tanh if call["approximate"] == "tanh" else _by_erf)(x)


def _by_erf(x: Tensor) -> _Slope:
    z = x * math.sqrt(0.5)
    a, bell = torch.erf(z) / 2, torch.exp(-x * x / 2)
    part = x * bell / math.sqrt(2 * math.pi)
    off_a = U * z.abs() * 2 / math.sqrt(math.pi) * bell + _FUNCTION * a.abs()
    off_part = (U * x * x / 2 + 7 * U) * part.abs()
    return _gelu_slope(x, a, part, off_a + off_part, x * x)


def _by_tanh(x: Tensor) -> _Slope:
    cube, scale = 0.044715, math.sqrt(2 / math.pi)
    z = scale * (x + cube * x**3)
    t = torch.tanh(z)
    rest = 1 / torch.cosh(z) ** 2
    half = scale / 2 * (1 + 3 * cube * x * x)
    # From there on the NPU's tanh is ±1, and 1 − tanh² is 0.
    ended = z.abs() * (1 - 5 * U) >= TANH_END
    off_t = torch.where(ended, 1 - t.abs(), 5 * U * z.abs() * rest + _FUNCTION * t.abs())
    off_rest = torch.where(ended, rest, 2 * t.abs() * off_t + U * rest)
    part = x * rest * half
    off_part = (x * half).abs() * off_rest + 6 * U * part.abs()
    return _gelu_slope(x, t / 2, part, off_t / 2 + off_part, x * x + (x * half).abs() + z.abs())


def _gelu_slope(x: Tensor, a: Tensor, part: Tensor, error: Tensor, peak: Tensor) -> _Slope:
    slope = a + part + 0.5
    sums = U * (a.abs() + (a + part).abs() + slope.abs())
    return _Slope(slope, error + sums, 4 * U + 0 * x, 1 + peak)


# ---------------------------------------------------------------------- softmax
def _softmax(subject: Subject) -> tuple[Expectation | None, ...]:
    g, y, dim = _rows(subject.call)
    size = (g * y).abs().sum(dim, keepdim=True)
    apart = (g - (g * y).sum(dim, keepdim=True)).abs()
    peak = size + g.abs() + apart
    tiny = TINY * (2 + y.shape[dim] * y.abs())
    errors = [
        y.abs() * (gamma(n + 1) * size + 2 * U * apart) * GROWN + tiny for n in _orders(y, dim)
    ]
    return _summed(subject, errors, y.abs() * (size + apart), peak)


def _log_softmax(subject: Subject) -> tuple[Expectation | None, ...]:
    g, y, dim = _rows(subject.call)
    size, power = g.abs().sum(dim, keepdim=True), y.exp()
    product = power * g.sum(dim, keepdim=True).abs()
    errors = [
        (power * gamma(n) * size + _FUNCTION * product + U * (g.abs() + product)) * GROWN
        + TINY * (2 + size)
        for n in _orders(y, dim)
    ]
    return _summed(subject, errors, g.abs() + power * size, size + power + power * size)


def _rows(call: OpCall) -> tuple[Tensor, Tensor, int]:
    """(g, y, dim), of at least one dimension."""
    g, y = (finite(call[name]) for name in ("grad_output", "output"))
    if y.dim() == 0:
        g, y = g.reshape(1), y.reshape(1)
    return g, y, call["dim"]


def _orders(y: Tensor, dim: int) -> tuple[int, int]:
    """Roundings of the NPU's sum and of torch's."""
    return chain_roundings(y.shape[dim]), y.shape[dim] + 1


def _summed(
    subject: Subject, errors: list[Tensor], size: Tensor, peak: Tensor
) -> tuple[Expectation | None, ...]:
    answer, true = subject.answer(), true_of(subject)
    npu, other = errors[0], TORCH * errors[1] + FLUSH * (1 + size)
    if is_short(answer.dtype):
        other = other + 3 * unit(answer.dtype) * size
    shaped = [
        values_of(torch.broadcast_to(x, peak.shape)).reshape(true.shape) for x in (npu, other, peak)
    ]
    limit = shaped[2] if is_short(answer.dtype) else 0.0
    made = near(answer.dtype, true, shaped[0], shaped[1], peak=shaped[2], torch_peak=limit)
    return (made,)


RULES: dict[str, Rule] = {
    "tanh_backward": _by_slope(_tanh, 2),
    "sigmoid_backward": _by_slope(_sigmoid, 3),
    "threshold_backward": moved,
    "silu_backward": _by_slope(_silu, 2),
    "gelu_backward": _by_slope(_gelu, 1),
    "_softmax_backward_data": _softmax,
    "_log_softmax_backward_data": _log_softmax,
}
