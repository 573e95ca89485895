# SPDX-License-Identifier: Apache-2.0
"""Losses: the error of each element, carried through a sum or a mean.

With e the elements' true losses, within ε each, a sum over K is within Σε + γ_n·Σ(|e| + ε), n the
roundings of golden.bounds.reductions; a mean that by K, and one rounding. Per element:

*mse*: the difference and the square round once each, 3u·e. *smooth_l1, huber*: below the limit
five roundings of e; above it the difference and a subtraction, 6u·(d + ½·limit), times delta for
huber. *binary_cross_entropy*: |1 − t|·|B| + |t|·|A| with logarithms of 2 ULP, three roundings:
8u of it. *with logits*: |1 − t|·|x| + (|w − 1|·|t| + 1)·log(1 + e^−x), 10u of it. A weight is a
product more. *soft_margin*: log(1 + e^a) with a rounded once: u·|a|·σ(a) + 4u·e; torch takes e^a
and 1 + e^a in fp32, so u·(|a| + 10) absolutely, and overflows where a is above 88. *nll*: a
product, so u·e; with weights the mean divides by their sum, γ_n and a rounding more.

Its gradient −w·g ÷ Σw is a product and a quotient: 2u of it, nothing but the zeros that are exact.

torch rounds each element to a 16-bit type up to four times, and the sum before the mean.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from golden.bounds.elementwise import EXP_LIMIT, true_of
from golden.bounds.expectation import (
    FLUSH,
    SLACK,
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
from golden.bounds.reductions import finite, roundings
from golden.calls import OpCall, base_name, truths, widened
from golden.formats import Floats
from golden.tensors import values_of

Tensor = torch.Tensor


@dataclass(frozen=True)
class _Elements:
    """Per element: the size that its roundings are relative to, and errors of either side."""

    size: Tensor
    npu: Tensor
    torch: Tensor
    peak: Tensor | None = None
    """The largest magnitude on the way, where that is not `size`."""
    true: Tensor | None = None
    """The element, where float64's own formula overflows; None: that of the op."""


def _operands(call: OpCall) -> tuple[torch.Tensor, torch.Tensor]:
    x, t = finite(call["self"]), finite(call["target"])
    zero = torch.zeros_like(x + t)
    return x + zero, t + zero


def _scalar(call: OpCall, name: str) -> float:
    return float(np.float32(call[name]))


def _mse(call: OpCall) -> _Elements:
    x, t = _operands(call)
    size = (x - t) ** 2
    return _Elements(size, 3 * U * size, 3 * U * size)


def _limited(name: str) -> Callable[[OpCall], _Elements]:
    def elements(call: OpCall) -> _Elements:
        x, t = _operands(call)
        d, limit = (x - t).abs(), _scalar(call, name)
        far = d + limit / 2
        size = torch.where(d < limit, d**2 / (2 * limit or 1.0), far)
        size = torch.maximum(size, torch.where((d - limit).abs() <= 4 * U * d, far, 0.0))
        size = size * (limit if name == "delta" else 1.0)
        # torch rounds the square to 16 bits, then divides.
        tiny = least(call["self"].dtype) / (limit or 1.0)
        # The square, and its half, may be below the normal range before they are divided.
        square = TINY / limit if limit and name == "beta" else 0.0
        return _Elements(size, 6 * U * size + square, 6 * U * size + tiny)

    return elements


def _weight(call: OpCall) -> torch.Tensor | float:
    return 1.0 if call["weight"] is None else finite(call["weight"]).abs()


def _cross_entropy(call: OpCall) -> _Elements:
    x, t = _operands(call)
    one, other = (v.clamp(min=-100.0).abs() for v in (x.log(), torch.log1p(-x)))
    size = ((1 - t).abs() * other + t.abs() * one) * _weight(call)
    return _Elements(size, 9 * U * size, 9 * U * size)


def _logits(call: OpCall) -> _Elements:
    x, t = _operands(call)
    soft = torch.logaddexp(-x, torch.zeros_like(x))
    if call["pos_weight"] is not None:
        soft = soft * ((finite(call["pos_weight"]) - 1).abs() * t.abs() + 1)
    plain = (1 - t).abs() * x.abs() + soft
    size = plain * _weight(call)
    return _Elements(size, 11 * U * size, 11 * U * size, torch.maximum(size, plain))


def _margin(call: OpCall) -> _Elements:
    x, t = _operands(call)
    a = -x * t
    size = torch.logaddexp(a, torch.zeros_like(a))
    npu = U * a.abs() * torch.sigmoid(a) * 1.01 + 4 * U * size
    given = -widened(call["self"]).double() * widened(call["target"]).double()
    true = torch.logaddexp(given, torch.zeros_like(given))
    return _Elements(size, npu, npu + U * (a.abs() + 10), true=true)


def _rule(elements: Callable[[OpCall], _Elements], *, decided: bool) -> Rule:
    """`decided`: the formula alone says what an operand that is not finite gives, as float64."""

    def rule(subject: Subject) -> tuple[Expectation | None, ...]:
        call, dtype = subject.call, subject.answer().dtype
        made = elements(call)
        true = true_of(subject) if made.true is None else values_of(_reduced(call, made.true))
        size, npu, other = (values_of(x) for x in (made.size, made.npu, made.torch))
        npu, other = npu + 4 * TINY, other + 4 * FLUSH
        if is_short(dtype):
            other = other + 4 * (unit(dtype) * size + least(dtype))
        odd = values_of(_odd(call)).astype(np.bool_) & (not decided)
        top = peak = size if made.peak is None else values_of(made.peak)
        count = size.size
        if call["reduction"]:
            peak = np.asarray(size.sum())
            top = np.maximum(peak, top.max(initial=0.0))
            npu = np.asarray(npu.sum() + gamma(roundings(count)) * (peak + npu.sum()))
            other = np.asarray(other.sum() + gamma(count + 1) * (peak + other.sum()))
            odd = np.asarray(odd.any())
        if call["reduction"] == 1:
            npu, other = (error / max(count, 1) for error in (npu, other))
            size = peak / max(count, 1)
            npu = npu + U * size
        else:
            size = peak
        if is_short(dtype):
            other = other + 2 * unit(dtype) * size
        limit = top if is_short(dtype) else 0.0
        result = near(dtype, true, npu, other, peak=top, torch_peak=limit)
        return (unclaimed(torch_open(result, _overflows(call, true)), odd),)

    return rule


def _reduced(call: OpCall, elements: torch.Tensor) -> torch.Tensor:
    """The loss of these elements."""
    if call["reduction"] == 0:
        return elements
    return elements.mean() if call["reduction"] == 1 else elements.sum()


def _odd(call: OpCall) -> torch.Tensor:
    """Elements with an infinite operand: formulas differ in what they make of it."""
    given = [call.arguments.get(name) for name in ("self", "target", "weight", "pos_weight")]
    found = torch.zeros((), dtype=torch.bool)
    for value in given:
        if isinstance(value, torch.Tensor):
            found = found | value.isinf()
    return found


def _overflows(call: OpCall, true: Floats) -> np.ndarray:
    """Where torch's e^(−x·t) of soft_margin_loss is infinite."""
    if base_name(call.op) != "soft_margin_loss":
        return np.zeros(true.shape, np.bool_)
    x, t = _operands(call)
    limit = EXP_LIMIT if call["self"].dtype != torch.float16 else 11.0
    over = values_of(-x * t > limit).astype(np.bool_)
    return over if call["reduction"] == 0 else np.asarray(over.any())


def _likelihood(subject: Subject) -> tuple[Expectation | None, ...]:
    call, dtype = subject.call, subject.answer().dtype
    absolute: dict[str, object] = {"self": finite(call["self"]).abs()}
    if call["weight"] is not None:
        absolute["weight"] = finite(call["weight"]).abs()
    sizes = truths(call, **{**absolute, "reduction": call["reduction"] and 2})
    (size, norm) = (np.abs(values_of(x)) for x in sizes if x is not None)
    true, total = (values_of(x) for x in truths(call) if x is not None)
    bound = np.abs(np.where(np.isfinite(true), true, 0.0))
    count = max(call["target"].numel(), 1)
    short = unit(dtype) if is_short(dtype) else 0.0
    errors = []
    for n in (roundings(count), count + 1):
        error = (gamma(n) + 2 * U) * size + count * TINY
        errors.append((error, gamma(n) * norm + TINY))
    (npu, npu_norm), (other, other_norm) = errors
    other, other_norm = other + 3 * short * size, other_norm + 3 * short * norm
    if short:
        other = other + count * least(dtype)
    if call["reduction"] == 1:
        with np.errstate(divide="ignore", invalid="ignore"):
            npu, other = (
                np.nan_to_num((error + bound * wrong) / (np.abs(total) - wrong).clip(0))
                + 2 * U * bound
                for error, wrong in ((npu, npu_norm), (other, other_norm))
            )
    other = other + 3 * short * bound + SLACK
    peak = size if call["reduction"] else 0.0
    limit = size if is_short(dtype) and call["reduction"] else 0.0
    first = near(dtype, true, npu, other, peak=peak, torch_peak=limit)
    return first, near(dtype, total, npu_norm, other_norm)


def _largest(values: torch.Tensor) -> float:
    """The largest finite magnitude; 0 of nothing."""
    return float(finite(values).abs().max()) if values.numel() else 0.0


def _gradient(subject: Subject) -> tuple[Expectation | None, ...]:
    call, true, dtype = subject.call, true_of(subject), subject.answer().dtype
    size = np.abs(np.where(np.isfinite(true), true, 0.0))
    weight = 1.0 if call["weight"] is None else _largest(call["weight"])
    total = float(finite(call["total_weight"]).abs()) if call["reduction"] == 1 else 1.0
    inverse = 1 / total if total else 0.0  # then nothing is finite
    apart = (size > 0).astype(np.float64)
    npu = gamma(3) * size + apart * TINY * (1 + inverse)
    other = npu + apart * TINY * (1 + weight)
    if is_short(dtype):
        other = other + 3 * unit(dtype) * size + apart * least(dtype) * (1 + weight)
    first = _largest(call["grad_output"]) * inverse  # what torch begins with
    return (near(dtype, true, npu, other, peak=size * total, torch_peak=apart * first),)


_ELEMENTS: dict[str, Callable[[OpCall], _Elements]] = {
    "mse_loss": _mse,
    "smooth_l1_loss": _limited("beta"),
    "huber_loss": _limited("delta"),
    "binary_cross_entropy": _cross_entropy,
    "binary_cross_entropy_with_logits": _logits,
    "soft_margin_loss": _margin,
}
_DECIDED = ("mse_loss", "smooth_l1_loss", "huber_loss")
"""Differences and squares: no infinity meets a factor that may be 0 or a logarithm."""
RULES: dict[str, Rule] = {
    **{name: _rule(elements, decided=name in _DECIDED) for name, elements in _ELEMENTS.items()},
    **dict.fromkeys(("nll_loss_forward", "nll_loss2d_forward"), _likelihood),
    **dict.fromkeys(("nll_loss_backward", "nll_loss2d_backward"), _gradient),
}
