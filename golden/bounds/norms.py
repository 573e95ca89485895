# SPDX-License-Identifier: Apache-2.0
"""layer_norm, group_norm and rms_norm; golden.bounds.batchnorm uses the same derivation.

*Rows of K elements*: mean m off by δ and variance v = V/K, as golden.bounds.reductions has them.
The computed variance is a sum of squares, never below zero, so what the root takes lies between
max(v + eps − Δ, eps) and v + eps + Δ, Δ the error of v and of adding eps. That gives ρ, the
relative error of r = 1/√(v + eps), and 4u for the 2 ULP of the function. With t = x − m the result
t·r·w + b is within

    |r·w|·(|δ|·(1 + ρ) + |t|·(ρ + 4u)) + 2u·(|t·r·w|·(1 + ρ) + |b|)

torch updates mean and variance element by element (Welford) and merges parts of a row. With E the
error of a running mean, γ_{n+2}·max|x|, an update changes the sum by (x − m′)(x − m″) within
E·(|x − m′| + |x − m″|) + E²; by Cauchy and Schwarz, Σ(x − m′)² ≤ 2V, all updates within
(1 + √2)·E·√(KV) + K·E². A merge adds δ²·ab/(a + b) with δ within 2E, Σ ab/(a + b) ≤ K·log₂K/4: all
merges within 2·E·√(KV·log₂K) + K·E²·log₂K. Its group_norm of channels that lie innermost takes
Σx²/K − m²: within 2·γ_{n+4}·Σx²/K. Both apply r as x·(r·w) + (b − m·r·w): another
4u·(|x| + |m|)·|r·w|.

*rms_norm*: the mean of squares has positive terms, so a relative error γ_{n+4}; ρ as above;
x·r·w within |x·r·w|·(ρ + 4u).

torch computes 16-bit types in fp32; rms_norm there is taken apart, and rounds to 16 bits twice
more.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import torch

from golden.bounds.exact import equal
from golden.bounds.expectation import (
    TINY,
    Expectation,
    Rule,
    Subject,
    U,
    gamma,
    is_short,
    near,
    unclaimed,
    unit,
)
from golden.bounds.reductions import finite, roundings
from golden.bounds.rows import Rows, root_error
from golden.calls import truths
from golden.formats import Floats, Mask
from golden.tensors import values_of


def flat(tensor: torch.Tensor | None, count: int, default: float) -> Floats:
    """A weight or bias as one row, as it is."""
    if tensor is None:
        return np.full((1, count), default)
    return np.asarray(values_of(tensor).reshape(1, count))


def open_affine(w: Floats, b: Floats) -> Mask:
    """Where a weight or bias is infinite: (x − m)·r·w + b and x·(r·w) + (b − m·r·w) differ."""
    return np.asarray(np.isinf(w) | np.isinf(b))


def bounded(values: Floats) -> Floats:
    """The values; what is not finite counts as 0."""
    return np.where(np.isfinite(values), values, 0.0)


def true_values(subject: Subject, **replaced: object) -> list[Floats]:
    """The true value of each output that is a tensor."""
    found = truths(subject.call, **replaced)
    return [values_of(x).astype(np.float64) for x in found if x is not None]


def _with_elements(rule: Rule) -> Rule:
    """The rule, and equality with torch where there is no element to normalise."""

    def either(subject: Subject) -> tuple[Expectation | None, ...]:
        return rule(subject) if subject.call["input"].numel() else equal(subject)

    return either


def _layer_norm(subject: Subject) -> tuple[Expectation | None, ...]:
    call = subject.call
    shape = call["normalized_shape"]
    count = prod(shape)
    x = values_of(call["input"]).reshape(-1, count)
    w, b = flat(call["weight"], count, 1.0), flat(call["bias"], count, 0.0)
    return _standardised(subject, x, w, b, shape)


def _group_norm(subject: Subject) -> tuple[Expectation | None, ...]:
    call = subject.call
    batch, channels, groups = call["N"], call["C"], call["group"]
    split = (batch, groups, channels // groups, call["HxW"])
    shape = (batch * groups, channels // groups * call["HxW"])
    x = values_of(call["input"]).reshape(split)
    affine = []
    for name, default in (("weight", 1.0), ("bias", 0.0)):
        row = flat(call[name], channels, default).reshape(1, groups, -1, 1)
        affine.append(np.broadcast_to(row, split).reshape(shape))
    weight, bias = affine
    innermost = not call["input"].is_contiguous()
    x = x.reshape(shape)
    sizes = (channels // groups, *call["input"].shape[2:])
    return _standardised(subject, x, weight, bias, sizes, difference_of_squares=innermost)


def _standardised(
    subject: Subject,
    x: Floats,
    w: Floats,
    b: Floats,
    sizes: Sequence[int],
    *,
    difference_of_squares: bool = False,
) -> tuple[Expectation | None, ...]:
    """(x − mean)·r·w + b of each row, the means, and r."""
    rows = Rows.of(x, float(subject.call["eps"]))
    npu = rows.errors(roundings(*sizes))
    other = rows.torch_errors(difference_of_squares=difference_of_squares)
    reach = np.abs(rows.x) + np.abs(rows.mean)
    affine = open_affine(w, b)
    w, b = bounded(w), bounded(b)
    sides = (
        (npu.result(rows, w, b), npu.shift, npu.root),
        (other.result(rows, w, b) + other.applied(rows, w, reach), other.shift, other.root),
    )
    peak = np.broadcast_to(rows.spread + rows.absolute, x.shape)
    found = []
    for at, true in enumerate(true_values(subject)):
        result = subject.answer(at)
        shape = (x.shape, rows.mean.shape)[at > 0]
        errors = [np.broadcast_to(side[at], shape).reshape(true.shape) for side in sides]
        limit = (peak if at == 0 else rows.spread + rows.absolute).reshape(true.shape)
        torch_error = errors[1] + short_error(result, true)
        made = near(result.dtype, true, errors[0], torch_error, peak=limit)
        # ∞ − ∞ is NaN in every formula, but the mean may be either.
        open_rows = np.broadcast_to(rows.infinite, shape).reshape(true.shape)
        odd = open_rows if at == 1 else open_rows & ~np.isnan(true)
        if at == 0:
            odd = odd | np.broadcast_to(affine, shape).reshape(true.shape)
        found.append(unclaimed(made, odd))
    return tuple(found)


def short_error(result: torch.Tensor, true: Floats, count: int = 1) -> Floats | float:
    """Further roundings to a 16-bit result in torch."""
    if not is_short(result.dtype):
        return 0.0
    return count * unit(result.dtype) * np.abs(np.where(np.isfinite(true), true, 0.0))


def _rms_norm(subject: Subject) -> tuple[Expectation | None, ...]:
    call = subject.call
    shape, given = call["normalized_shape"], call["eps"]
    eps = torch.finfo(torch.float32).eps if given is None else float(given)
    count = prod(shape)
    x = values_of(finite(call["input"])).reshape(-1, count)
    square = (x**2).mean(1, keepdims=True)
    errors = []
    for n in (roundings(*shape), count + 2):
        wrong = gamma(n + 4) * square + 2 * U * (square + eps)
        errors.append(root_error(wrong, square + eps, eps))
    found = []
    weight = bounded(flat(call["weight"], count, 1.0))
    tiny = 2 * TINY * (1 + float(np.abs(weight).max(initial=1.0)))
    for at, true in enumerate(true_values(subject, eps=eps)):
        result = subject.answer(at)
        size = np.abs(np.where(np.isfinite(true), true, 0.0))
        rows = [np.broadcast_to(rho, (x.shape, square.shape)[at > 0]) for rho in errors]
        npu, other = (size * (rho.reshape(true.shape) + 4 * U) + tiny for rho in rows)
        reach = np.broadcast_to(square * count, rows[0].shape).reshape(true.shape)
        other = other + short_error(result, true, 3)
        found.append(near(result.dtype, true, npu, other, peak=reach))
    return tuple(found)


RULES: dict[str, Rule] = {
    **dict.fromkeys(("native_layer_norm", "layer_norm"), _with_elements(_layer_norm)),
    "native_group_norm": _with_elements(_group_norm),
    **dict.fromkeys(("rms_norm", "_fused_rms_norm"), _with_elements(_rms_norm)),
}
