# SPDX-License-Identifier: Apache-2.0
"""layer_norm, group_norm, rms_norm, and batch_norm in inference.

*layer_norm*, *group_norm* over K elements: mean m with |δ| ≤ γ_{n+2}·S/K, variance v = V/K with
the error of golden.bounds.reductions.square_error. r̂ = 1/√(v̂ + eps) is within
ρ = ½·Δ/(v + eps − Δ) + 4u of r relatively, Δ the error of v and of adding eps, 4u the 2 ULP of the
function. With t = x − m the result t·r·w + b is within

    |r·w|·(|δ| + |t|·(ρ + 4u)) + 2u·(|t·r·w| + |b|)

*rms_norm*: the mean of squares has positive terms, so a relative error γ_{n+4}; ρ as above;
x·r·w within |x·r·w|·(ρ + 4u).

*batch_norm*: (x − m)·(w·r) + b, or x·(w·r) + (b − m·w·r): at most 8 roundings, each of a term no
larger than |x·w·r| + |m·w·r| + |b|.

torch computes 16-bit types in fp32; rms_norm there is taken apart, and rounds to 16 bits twice
more.
"""

from __future__ import annotations

from math import prod

import numpy as np
import torch

from golden.bounds.expectation import (
    SLACK,
    TINY,
    Expectation,
    Rule,
    Subject,
    U,
    exact,
    is_short,
    near,
    unit,
)
from golden.bounds.reductions import finite, roundings, square_error
from golden.calls import truths, values_of
from golden.formats import Floats
from golden.tolerance import gamma

_FUNCTION = 4 * U
"""Relative error of a root's reciprocal of 2 ULP."""


def _flat(tensor: torch.Tensor | None, count: int, default: float) -> Floats:
    """A weight or bias as one row."""
    if tensor is None:
        return np.full((1, count), default)
    return values_of(finite(tensor)).reshape(1, count)


def _true(subject: Subject, **replaced: object) -> list[Floats]:
    found = truths(subject.call, **replaced)
    return [values_of(x).astype(np.float64) for x in found if x is not None]


def _root_error(error: Floats, square: Floats) -> Floats:
    """ρ: relative error of 1/√square, where `square` has an absolute error."""
    with np.errstate(divide="ignore", invalid="ignore"):
        worst = np.where(error < 0.5 * square, 0.5 * error / (square - error), np.inf)
    return np.asarray(np.where(error == 0, 0.0, worst) + _FUNCTION)


def _layer_norm(subject: Subject) -> tuple[Expectation | None, ...]:
    call = subject.call
    shape = call["normalized_shape"]
    count = prod(shape)
    x = values_of(finite(call["input"])).reshape(-1, count)
    w, b = _flat(call["weight"], count, 1.0), _flat(call["bias"], count, 0.0)
    return _standardised(subject, x, w, b, len(shape))


def _group_norm(subject: Subject) -> tuple[Expectation | None, ...]:
    call = subject.call
    batch, channels, groups = call["N"], call["C"], call["group"]
    split = (batch, groups, channels // groups, call["HxW"])
    x = values_of(finite(call["input"])).reshape(split)
    affine = []
    for name, default in (("weight", 1.0), ("bias", 0.0)):
        row = _flat(call[name], channels, default).reshape(1, groups, -1, 1)
        affine.append(np.broadcast_to(row, split).reshape(batch * groups, -1))
    weight, bias = affine
    return _standardised(subject, x.reshape(batch * groups, -1), weight, bias, 3)


def _standardised(
    subject: Subject, x: Floats, w: Floats, b: Floats, passes: int
) -> tuple[Expectation | None, ...]:
    """(x − mean)·r·w + b of each row, the means, and r."""
    count, eps = x.shape[1], float(subject.call["eps"])
    mean = x.mean(1, keepdims=True)
    t = x - mean
    spread, absolute = (t**2).sum(1, keepdims=True), np.abs(x).sum(1, keepdims=True)
    square = spread / count + eps
    errors: list[list[Floats]] = []
    for n in (roundings(count, passes), count + 2):
        shift = gamma(n + 2) * absolute / count + U * np.abs(mean) + TINY
        wrong = square_error(absolute, spread, mean, count, n) / count + 3 * U * square
        rho = _root_error(wrong, square)
        r = 1 / np.sqrt(square)
        scaled = np.abs(r * w)
        y = scaled * (shift + np.abs(t) * (rho + 4 * U)) * (1 + 8 * U)
        y = y + 2 * U * (scaled * np.abs(t) + np.abs(b)) + TINY
        errors.append([y, shift, r * rho + 2 * U * r])
    peak = np.broadcast_to(spread + absolute, x.shape)
    found = []
    for at, true in enumerate(_true(subject)):
        result = subject.answer(at)
        npu, other = (np.broadcast_to(e[at], (x.shape, mean.shape)[at > 0]) for e in errors)
        reach = (peak if at == 0 else spread + absolute).reshape(true.shape)
        other = other.reshape(true.shape) + _short(result, true)
        found.append(near(result.dtype, true, npu.reshape(true.shape), other, peak=reach))
    return tuple(found)


def _short(result: torch.Tensor, true: Floats, count: int = 1) -> Floats | float:
    """Further roundings to a 16-bit result in torch."""
    if not is_short(result.dtype):
        return 0.0
    return count * unit(result.dtype) * np.abs(np.where(np.isfinite(true), true, 0.0))


def _rms_norm(subject: Subject) -> tuple[Expectation | None, ...]:
    call = subject.call
    shape, given = call["normalized_shape"], call["eps"]
    eps = torch.finfo(call["input"].dtype).eps if given is None else float(given)
    count = prod(shape)
    x = values_of(finite(call["input"])).reshape(-1, count)
    square = (x**2).mean(1, keepdims=True)
    errors = []
    for n in (roundings(count, len(shape)), count + 2):
        errors.append(_root_error(gamma(n + 4) * square + 2 * U * (square + eps), square + eps))
    found = []
    weight = _flat(call["weight"], count, 1.0)
    tiny = 2 * TINY * (1 + float(np.abs(weight).max(initial=1.0)))
    for at, true in enumerate(_true(subject, eps=eps)):
        result = subject.answer(at)
        size = np.abs(np.where(np.isfinite(true), true, 0.0))
        rows = [np.broadcast_to(rho, (x.shape, square.shape)[at > 0]) for rho in errors]
        npu, other = (size * (rho.reshape(true.shape) + 4 * U) + tiny for rho in rows)
        reach = np.broadcast_to(square * count, rows[0].shape).reshape(true.shape)
        other = other + _short(result, true, 3)
        found.append(near(result.dtype, true, npu, other, peak=reach))
    return tuple(found)


def _batch_norm(subject: Subject) -> tuple[Expectation | None, ...]:
    call = subject.call
    x = finite(call["input"])
    shape = [1, -1, *[1] * (x.dim() - 2)]
    square = finite(call["running_var"]) + float(call["eps"])
    weight, bias = (call[name] for name in ("weight", "bias"))
    r = square.rsqrt() * (1.0 if weight is None else finite(weight).abs())
    terms = (x.abs() + finite(call["running_mean"]).abs().reshape(shape)) * r.reshape(shape)
    if bias is not None:
        terms = terms + finite(bias).abs().reshape(shape)
    size = values_of(terms.nan_to_num())
    first, *others = _true(subject)
    answer = subject.answer()
    other = 16 * U * size + TINY + _short(answer, size, 3)
    result = near(answer.dtype, first, 10 * U * size + SLACK * size + TINY, other, peak=size)
    return (result, *(exact(subject.answer(at)) for at in range(1, 1 + len(others))))


RULES: dict[str, Rule] = {
    **dict.fromkeys(("native_layer_norm", "layer_norm"), _layer_norm),
    "native_group_norm": _group_norm,
    **dict.fromkeys(("rms_norm", "_fused_rms_norm"), _rms_norm),
    **dict.fromkeys(
        ("batch_norm", "native_batch_norm", "_native_batch_norm_legit_no_training"), _batch_norm
    ),
}
