# SPDX-License-Identifier: Apache-2.0
"""Gradients of attention; the forward result and the logarithms of its sums are exact operands.

With s the scores of golden.bounds.attention_scores, rounded with a mask that is added, ε their
absolute error, λ a row's operand logsumexp:

*P = e^(s − λ)*: the difference adds u·|s − λ|, the function 4u: with η = ε + u·|s − λ| + 4u, P is
within P·(e^η − 1) = δP, however large η is.
*D = Σ g·out* over E: γ_{n+1}·Σ|g·out| = δD. *g·Vᵀ*: γ_{E+1}·Σ|g|·|V| = δR.
*S = P·(R − D)*, R = g·Vᵀ: with T = R − D, two roundings: (P + δP)·(δR + δD + 3u·|T|) + δP·|T| = δS.
*grad_query = scale·S·K* over the N keys: |scale|·(Σ δS·|K| + γ_{N+3}·Σ (|S| + δS)·|K|), grad_key
over the M rows that see a key alike. *grad_value = Pᵀ·g*: Σ δP·|g| + γ_{M+2}·Σ (P + δP)·|g|.

torch adds in any order, has e^x to 8u, and rounds P and S to a 16-bit type before their products,
below its normal range by as much as its least number.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch

from golden.bounds.attention_scores import scores_of
from golden.bounds.elementwise import true_of
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
    unclaimed,
    unit,
)
from golden.bounds.reductions import chain_roundings, finite
from golden.calls import OpCall
from golden.tensors import values_of

Tensor = torch.Tensor


@dataclass(frozen=True)
class _Side:
    """What the NPU and torch do differently."""

    sum: int
    """Roundings of a sum over E."""
    scores: Tensor
    """ε"""
    growth: int
    """How often a product's bound is to be counted."""
    exponential: float
    rounded: float
    """Relative error of P and S where they are rounded on the way."""
    least: float
    """And what that rounding adds below the normal range."""


@dataclass(frozen=True)
class _Operands:
    """In float64, heads of keys and values repeated to those of queries."""

    g: Tensor
    q: Tensor
    k: Tensor
    v: Tensor
    out: Tensor
    scale: float
    groups: int

    @property
    def absolute(self) -> _Operands:
        """Their magnitudes."""
        tensors = {name: getattr(self, name).abs() for name in ("g", "q", "k", "v", "out")}
        return replace(self, **tensors)

    def per_key(self, x: Tensor) -> Tensor:
        """Summed over the queries' heads that share one."""
        batch, heads, *rest = x.shape
        return x.reshape(batch, heads // self.groups, self.groups, *rest).sum(2)


def _operands(call: OpCall) -> _Operands:
    g, q, k, v, out = (finite(call[n]) for n in ("grad_out", "query", "key", "value", "out"))
    groups = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(groups, 1) for x in (k, v))
    scale = call["scale"]
    return _Operands(
        g, q, k, v, out, q.shape[-1] ** -0.5 if scale is None else float(scale), groups
    )


def _attention(subject: Subject) -> tuple[Expectation | None, ...]:
    call = subject.call
    scores, x = scores_of(call), _operands(call)
    kind = call["query"].dtype
    short, tiny = (unit(kind), least(kind) + FLUSH) if is_short(kind) else (0.0, 0.0)
    depth = x.q.shape[-1]
    npu = _Side(chain_roundings(depth) + 1, scores.npu_error(), 1, 4 * U, 0.0, 0.0)
    other = _Side(depth + 1, scores.torch_error(kind), 2, 8 * U, short, tiny)
    lost = call["logsumexp"].double().unsqueeze(-1)
    exponent = scores.true - lost
    far, power = exponent.abs(), exponent.exp()
    apart = x.g @ x.v.mT - (x.g * x.out).sum(-1, keepdim=True)
    sides = []
    for side in (npu, other):
        eta = side.scores + U * torch.where(far.isfinite(), far, 0.0) + side.exponential
        small = power * torch.expm1(eta.clamp(max=1.0))
        grown = torch.where(eta < 1, small, (exponent + eta).exp() - power)  # no 0·∞
        off_p = grown + power * side.rounded + side.least + TINY
        sides.append(_errors(x, side, power, off_p, apart))
    slope = power * apart
    sizes = _sums(x.absolute, (slope.abs(), slope.abs(), power), max(abs(x.scale), 1.0))
    gradients = None if scores.mask is None else _sums(x, (slope, slope, power), x.scale)
    largest = float(max(power.max(), slope.abs().max()))
    by_head = lost.isfinite().all(-2, keepdim=True)  # what is no number then is e^(s − λ)
    by_key = x.per_key((~by_head).double()) == 0
    overflows = [values_of(mask) for mask in (by_head, by_key, by_key)]
    found: list[Expectation | None] = []
    for at, answer in enumerate(subject.answers):
        assert answer is not None
        own, far, size = (values_of(part[at]) for part in (*sides, sizes))
        limit = np.maximum(size, largest) if short else 0.0
        true = true_of(subject, at)
        if gradients is not None:
            true = np.where(np.isfinite(true), values_of(gradients[at]), true)
        far = far + short * size + tiny
        expectation = near(answer.dtype, true, own, far, peak=size, torch_peak=limit)
        found.append(unclaimed(expectation, ~np.isfinite(own) & (overflows[at] != 0)))
    return tuple(found)


def _errors(
    x: _Operands, side: _Side, power: Tensor, off_p: Tensor, apart: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Of the gradients of query, key and value."""
    rows, keys = power.shape[-2:]
    size = x.absolute
    off_d = gamma(side.sum) * (size.g * size.out).sum(-1, keepdim=True)
    off_r = side.growth * gamma(x.q.shape[-1] + 1) * (size.g @ size.v.mT)
    slope = power * apart.abs()
    off_s = (power + off_p) * (off_r + off_d + 3 * U * apart.abs()) + off_p * apart.abs()
    off_s = off_s + side.rounded * slope + side.least + TINY
    many = rows * x.groups
    by_key = gamma(side.growth * (keys + 3)) * (slope + off_s) + off_s
    by_row = gamma(side.growth * (many + 3)) * (slope + off_s) + off_s
    by_value = gamma(side.growth * (many + 2)) * (power + off_p) + off_p
    query, key, value = _sums(size, (by_key, by_row, by_value), abs(x.scale))
    return query + TINY, key + TINY, value + TINY


def _sums(
    x: _Operands, weights: tuple[Tensor, Tensor, Tensor], scale: float
) -> tuple[Tensor, Tensor, Tensor]:
    """The products that gradients of query, key and value are, with these for S, S and P."""
    by_key, by_row, by_value = weights
    return (
        scale * (by_key @ x.k),
        scale * x.per_key(by_row.mT @ x.q),
        x.per_key(by_value.mT @ x.g),
    )


RULES: dict[str, Rule] = {"_scaled_dot_product_flash_attention_for_cpu_backward": _attention}
