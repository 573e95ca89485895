# SPDX-License-Identifier: Apache-2.0
"""Activations of several passes and their gradients, gradients of losses of pairs.

Each is a chain of roundings u of numbers of one sign, and functions of 2 ULP (4u); a rounding of
one piece is relative to it, so the result is within n·u of `size`, which is the true value where
nothing cancels. Elsewhere:

*elu's gradient from the result*: y + α·s is rounded once, relative to |y| + |α·s|. *From the
operand*: a = input_scale·x is rounded, which moves e^a by u·|a|. *hardswish's gradient*: x ÷ 3 + ½
is relative to |x| ÷ 3 + ½. *softplus*: u·|a| in a = beta·x moves σ(a) by up to u·|a|·(1 − σ) of it;
where a is within 2u·|a| of the threshold either piece is right, σ(−a) apart. *log_sigmoid*: of 1 −
z ÷ (1 + z) the roundings are relative to 1.

torch computes the same pieces, in fp32 with functions of up to 4 ULP, with 1 − σ(b) as a difference
for glu's gate: 4u of σ more, and σ rounded to a 16-bit type. In 16 bits it rounds up to three
times more. σ of a gate below −EXP_LIMIT is 0 there, and products that overflow on the way are
infinite. float64's 1 − σ cancels in glu's gradient, so that its truth is another formula's here.

An infinite operand times a factor that is 0 in fp32, but not in float64, is NaN: `vanishing`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from golden.bounds.elementwise import EXP_LIMIT, true_of
from golden.bounds.exact import moved
from golden.bounds.expectation import (
    FLUSH,
    LARGEST,
    TINY,
    Expectation,
    Rule,
    Subject,
    U,
    is_short,
    least,
    near,
    torch_open,
    unclaimed,
    unit,
)
from golden.bounds.reductions import finite
from golden.calls import OpCall, truths, widened
from golden.formats import Floats, Mask
from golden.tensors import values_of

Tensor = torch.Tensor
_TORCH = 4
"""How often the NPU's roundings count for torch."""
_LARGE = 2.0**100
"""Stands for an infinity."""


@dataclass(frozen=True)
class _Terms:
    """Per element of one output, in float64."""

    size: Tensor | None = None
    """What roundings are relative to; None: the true value."""
    other: Tensor | float = 0.0
    """Absolute errors beyond them, of both sides."""
    torch: Tensor | float = 0.0
    """Of torch alone."""
    factor: Tensor | float = 1.0
    """What a subnormal number on the way is multiplied by afterwards."""
    peak: Tensor | float = 0.0
    """The largest magnitude on the way, where that is not `size`."""
    true: Tensor | None = None
    """The true value where float64's own formula cancels; None: that of the op."""


Terms = Callable[[OpCall], _Terms]


def _chain(steps: int, *terms: Terms) -> Rule:
    """Within `steps` roundings, one _Terms for each output."""

    def rule(subject: Subject) -> tuple[Expectation | None, ...]:
        found: list[Expectation | None] = []
        for at, given in enumerate(terms):
            answer = subject.answers[at]
            if answer is None:
                found.append(None)
                continue
            made, true = given(subject.call), true_of(subject, at)
            if made.true is not None:
                true = values_of(made.true)
            shape, dtype = tuple(true.shape), answer.dtype
            size = np.abs(np.where(np.isfinite(true), true, 0.0))
            if made.size is not None:
                size = np.maximum(size, values_of(made.size.broadcast_to(shape)))
            extra, of_torch, factor, peak = (
                values_of(torch.as_tensor(x, dtype=torch.float64).broadcast_to(shape))
                for x in (made.other, made.torch, made.factor, made.peak)
            )
            grown = steps * U * (1 + 2 * steps * U)
            npu = grown * size + extra + steps * TINY * (1 + factor)
            far = npu + (_TORCH - 1) * grown * size + of_torch
            if is_short(dtype):
                far = far + 3 * (unit(dtype) * size + least(dtype) * (1 + factor))
            result = near(dtype, true, npu, far, peak=np.maximum(size, peak))
            result = unclaimed(result, vanishing(subject.call, at, true, factor))
            found.append(torch_open(result, ~np.isfinite(true)))
        return tuple(found)

    return rule


def vanishing(call: OpCall, at: int, true: Floats, factor: Floats) -> Mask:
    """Infinite results that are NaN if the factor of an infinite operand is 0 in fp32.

    `factor`: what a subnormal number on the way is multiplied by."""
    if np.isfinite(true).all():
        return np.zeros(true.shape, np.bool_)
    large = {
        name: widened(value).nan_to_num(nan=0.0, posinf=_LARGE, neginf=-_LARGE)
        for name, value in call.arguments.items()
        if isinstance(value, Tensor) and value.is_floating_point()
    }
    size = truths(call, **large)[at]
    assert size is not None
    return np.isinf(true) & (np.abs(values_of(size)) < _LARGE * 4 * FLUSH * (1 + factor))


def _plain(*names: str) -> Terms:
    """Relative to the true value; what these operands are is multiplied afterwards."""

    def terms(call: OpCall) -> _Terms:
        factor: Tensor | float = 1.0
        for name in names:
            value = call[name]
            if isinstance(value, Tensor):
                factor = factor * (1 + finite(value).abs())
            elif value is not None:
                factor = factor * (1 + abs(float(value)))
        return _Terms(factor=factor)

    return terms


def _elu(call: OpCall) -> _Terms:
    alpha, scale, step = (float(call[name]) for name in ("alpha", "scale", "input_scale"))
    g, x = finite(call["grad_output"]).abs(), finite(call["self_or_result"])
    near_zero = torch.clamp(x, max=0.0)
    if call["is_result"]:
        low = near_zero.abs() + abs(alpha * scale)
        size = g * abs(step) * low
    else:
        low = step * near_zero
        size = g * abs(step * alpha * scale) * low.exp() * (1 + low.abs())
    first = g * max(abs(step), abs(step * alpha * scale))  # what torch begins with
    lost = torch.where(first >= LARGEST, torch.inf, 0.0)
    return _Terms(size, factor=1 + g * abs(step) + low.abs(), torch=lost)


def _gate_of_six(call: OpCall) -> _Terms:
    x = finite(call["self"])
    return _Terms(factor=1 + x.abs(), peak=x.abs() * torch.clamp(x.abs() + 3, max=6.0))


def _hardswish(call: OpCall) -> _Terms:
    g, x = finite(call["grad_output"]).abs(), finite(call["self"]).abs()
    return _Terms(g * (x / 3 + 0.5), factor=1 + g)


def _softplus(call: OpCall) -> _Terms:
    g = finite(call["grad_output"]).abs()
    a = float(np.float32(call["beta"])) * finite(call["self"])
    steep = g * torch.sigmoid(a) * (1 + a.abs() * torch.sigmoid(-a))
    close = (a - float(call["threshold"])).abs() <= 2 * U * a.abs()
    jump = torch.where(close, g * torch.sigmoid(-a), 0.0)
    lost = torch.where(g * a.exp() * (1 + 16 * U) >= LARGEST, torch.inf, 0.0)
    return _Terms(steep, other=jump, factor=1 + g, torch=lost)


def _log_sigmoid(call: OpCall) -> _Terms:
    g, z = finite(call["grad_output"]).abs(), finite(call["buffer"])
    return _Terms(g * (1 + (z / (1 + z)).nan_to_num().abs()), factor=1 + g)


def _glu(call: OpCall) -> _Terms:
    g, dim = finite(call["grad_output"]).abs(), call["dim"]
    value, gate = finite(call["self"]).chunk(2, dim)
    dtype = call["grad_output"].dtype
    rounded = 8 * U + (4 * unit(dtype) if is_short(dtype) else 0.0)
    soft = torch.sigmoid(gate)
    lost = [g * _lost(gate), g * value.abs() * (rounded * soft + _lost(gate))]
    factor = 1 + g * (1 + value.abs())
    wide, infinite = widened(call["grad_output"]), widened(call["self"])
    value, gate = infinite.chunk(2, dim)
    soft, rest = torch.sigmoid(gate), torch.sigmoid(-gate)
    return _Terms(
        torch=torch.cat(lost, dim),
        factor=torch.cat([factor] * 2, dim),
        true=torch.cat([wide * soft, wide * (value * soft * rest)], dim),
    )


def _gated(call: OpCall) -> _Terms:
    value, gate = finite(call["self"]).chunk(2, call["dim"])
    return _Terms(factor=1 + value.abs(), torch=value.abs() * _lost(gate))


def _lost(gate: Tensor) -> Tensor:
    """σ where torch's is 0, because its e^−x is infinite."""
    return torch.where(gate <= -EXP_LIMIT, torch.sigmoid(gate), 0.0)


def _pair(call: OpCall) -> _Terms:
    """Gradients of losses: a difference, scaled; torch rounds the scale first."""
    g = finite(call["grad_output"]).abs()
    apart = (finite(call["self"]) - finite(call["target"])).abs()
    dtype = call["self"].dtype
    over = 2 * apart * torch.clamp(g, min=1.0) * (1 + unit(dtype)) >= torch.finfo(dtype).max
    lost = torch.where(over, torch.inf, 0.0) if is_short(dtype) else 0.0
    return _Terms(factor=1 + g + apart, torch=lost)


def _cross_entropy(call: OpCall) -> _Terms:
    """The quotient by max((1 − x)·x, 10⁻¹²)."""
    x = finite(call["self"])
    made = _pair(call)
    weight = 1.0 if call["weight"] is None else finite(call["weight"]).abs()
    return _Terms(factor=made.factor * weight / ((1 - x) * x).clamp(min=1e-12))


def _cut(rule: Rule, operand: str = "self") -> Rule:
    """The same, but nothing about a NaN beside limits: torch's vectors and its loops differ."""

    def cut(subject: Subject) -> tuple[Expectation | None, ...]:
        (made,) = rule(subject)
        assert made is not None
        return (unclaimed(made, subject.call[operand].isnan().numpy()),)

    return cut


RULES: dict[str, Rule] = {
    "leaky_relu": _chain(2, _plain("negative_slope")),
    "leaky_relu_backward": _chain(2, _plain("negative_slope")),
    "_prelu_kernel": _chain(2, _plain("weight")),
    "_prelu_kernel_backward": _chain(2, _plain("weight"), _plain("self")),
    "elu": _chain(9, _plain("alpha", "scale")),
    "elu_backward": _cut(_chain(9, _elu), "self_or_result"),
    "hardtanh_backward": _cut(moved),
    "hardsigmoid_backward": _cut(_chain(2, _plain())),
    "hardswish": _chain(5, _gate_of_six),
    "hardswish_backward": _cut(_chain(5, _hardswish)),
    "softplus_backward": _chain(8, _softplus),
    "log_sigmoid_forward": _chain(5, _plain(), _plain()),
    "log_sigmoid_backward": _chain(6, _log_sigmoid),
    "glu": _chain(6, _gated),
    "glu_backward": _chain(13, _glu),
    "native_dropout_backward": _chain(2, _plain("scale")),
    "mse_loss_backward": _chain(4, _pair),
    "smooth_l1_loss_backward": _chain(5, _pair),
    "huber_loss_backward": _chain(4, _pair),
    "binary_cross_entropy_backward": _chain(9, _cross_entropy),
}
