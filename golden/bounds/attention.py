# SPDX-License-Identifier: Apache-2.0
"""Scaled dot product attention: softmax(scale·Q·Kᵀ + mask)·V.

A score s over D products, scaled and masked, has an absolute error ε ≤ γ_{D+3}·Σ|q·k|·scale +
2u·|s|. In softmax it acts like the error of its difference to the maximum, whose own error is the
same for all and cancels; so each weight p has the relative error of golden.bounds.softmax with ε
added to its terms. With ρ that error, the sum over L values is within

    Σ p·ρ·|V| + γ_{L+2}·Σ p·|V|

ρ is linear in ε, which is true up to a quarter: (1 + a)/(1 − b) − 1 ≤ 2(ε + ε') for a = e^ε − 1 and
b likewise. Large scores have errors beyond that, which may turn a tie round and give all the weight
to a key whose true weight is 0. There a weight is as small as its own score's error down and all
others' up make it, and as large as the reverse: with d the distance to the maximum,

    1/(1 + Σ_j e^(d_j + ε_j − d_i + ε_i)) ≤ p_i ≤ 1/(1 + Σ_j e^(d_j − ε_j − d_i − ε_i)),  j ≠ i

Where the products of a score may add up to more than the largest fp32 number, with or without the
scale, what becomes of them depends on the order: nothing is claimed of the row.

The NPU keeps scores and weights in fp32 for all types. torch's flash kernel rounds the weights of
16-bit operands to that type, u16·Σ p·|V| more; its plain one rounds scores as well, an error
u16·(|s| + |max|) in the exponent.

logsumexp: what the scores' errors move log Σ e^s by, the sum's relative error, 2 ULP of the
logarithm and two roundings.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from golden.bounds.budgets import exponential
from golden.bounds.expectation import (
    LARGEST,
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
from golden.bounds.reductions import chain_roundings, finite
from golden.calls import OpCall, truths
from golden.formats import Floats, Mask
from golden.tensors import values_of

_LINEAR = 0.25
"""The largest error of a score that counts as a relative one of its exponential."""


@dataclass(frozen=True)
class Scores:
    """In float64: s with −∞ where masked, Σ|q·k|·scale, and the same + |mask|."""

    true: torch.Tensor
    product: torch.Tensor
    absolute: torch.Tensor
    values: torch.Tensor
    """|V|, a head of it per head of Q."""


def scores_of(call: OpCall) -> Scores:
    """The scores of a call, and what their errors are relative to."""
    q, k, v = (finite(call[name]) for name in ("query", "key", "value"))
    if k.shape[-3:-2] != q.shape[-3:-2] and q.dim() > 2:
        groups = q.shape[-3] // k.shape[-3]
        k, v = (x.repeat_interleave(groups, -3) for x in (k, v))
    scale = call["scale"]
    scale = q.shape[-1] ** -0.5 if scale is None else float(scale)
    true = q @ k.mT * scale
    product = absolute = q.abs() @ k.abs().mT * abs(scale)
    mask = call["attn_mask"]
    if call["is_causal"]:
        shape = true.shape[-2:]
        true = true.masked_fill(~torch.ones(shape, dtype=torch.bool).tril(), -torch.inf)
    if mask is not None and mask.dtype == torch.bool:
        true = true.masked_fill(~mask, -torch.inf)
    elif mask is not None:
        true = true + mask.double()
        absolute = absolute + finite(mask).abs()
    return Scores(true, product, absolute, v.abs())


def score_errors(scores: Scores, depth: int, growth: int) -> torch.Tensor:
    """ε of scores over `depth` products, whose own bound counts `growth` times."""
    s = torch.where(scores.true.isfinite(), scores.true, 0.0)
    return growth * gamma(depth + 3) * scores.absolute + 2 * U * s.abs()


@dataclass(frozen=True)
class _Side:
    """How the NPU, or torch, computes: what the formulas above leave open."""

    roundings: int
    exponential: float
    rounded: float
    """Relative error of scores and weights that are rounded on the way."""
    growth: int
    """How often a product's bound is to be counted."""


@dataclass(frozen=True)
class _Errors:
    """Of one side: the results, the weights, the logarithms of the weights' sums."""

    result: Floats
    weights: Floats
    log_sum: Floats


def _errors(scores: Scores, depth: int, side: _Side) -> _Errors:
    length = scores.true.shape[-1]
    s = torch.where(scores.true.isfinite(), scores.true, 0.0)
    maximum = scores.true.amax(-1, keepdim=True).nan_to_num(neginf=0.0)
    d = (scores.true - maximum).nan_to_num(nan=0.0, neginf=-torch.inf)
    p = (d.exp() / d.exp().sum(-1, keepdim=True)).nan_to_num()
    error = score_errors(scores, depth, side.growth)
    error = error + side.rounded * (s.abs() + maximum.abs())
    term = error + U * torch.where(d.isfinite(), d.abs(), 0.0) + side.exponential
    total = (p * term).sum(-1, keepdim=True) + gamma(side.roundings)
    log_sum = (_reach_of_log_sum(d, error) + 2 * total + 8 * U).squeeze(-1)
    last = side.growth * gamma(length + 2) + side.rounded
    wrong, largest = p * 2 * (term + total + 3 * U), p
    loose = torch.where(p.isnan() | d.isneginf(), 0.0, term).amax(-1, keepdim=True) > _LINEAR
    if loose.any():
        low, high = _hull(d, term * (1 + 4 * U))
        after = 2 * (gamma(side.roundings) + 3 * U)
        largest = torch.where(loose, high, p)
        wrong = torch.where(loose, torch.maximum(high - p, p - low) + after * high, wrong)
    spread = wrong @ scores.values + last * (largest @ scores.values)
    weights = wrong + side.rounded * largest
    return _Errors(
        values_of(spread) + TINY, values_of(weights) + 2 * TINY, np.asarray(values_of(log_sum))
    )


def _reach_of_log_sum(d: torch.Tensor, error: torch.Tensor) -> torch.Tensor:
    """How far log Σ e^d may move with its terms: a key that weighs nothing moves nothing."""
    least, middle, most = (x.logsumexp(-1, keepdim=True) for x in (d - error, d, d + error))
    reach = torch.maximum(most - middle, middle - least)
    return torch.where(middle.isfinite(), reach, 0.0)


def _hull(d: torch.Tensor, error: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The least and the largest weight of each key, for scores within an error of d."""
    low, high = d - error, d + error
    least = torch.sigmoid(low - _others(high)).nan_to_num(nan=0.0)
    largest = torch.sigmoid(high - _others(low)).nan_to_num(nan=0.0)
    return least, largest


def _others(x: torch.Tensor) -> torch.Tensor:
    """log Σ e^x over the last dimension without the element itself; −∞ of nothing."""
    nothing = torch.full_like(x[..., :1], -torch.inf)
    before = torch.cat([nothing, x.logcumsumexp(-1)[..., :-1]], -1)
    after = torch.cat([nothing, x.flip(-1).logcumsumexp(-1)[..., :-1]], -1).flip(-1)
    return torch.logaddexp(before, after)


def _attention(subject: Subject) -> tuple[Expectation | None, ...]:
    call, dtype = subject.call, subject.answer().dtype
    scores = scores_of(call)
    length, depth = scores.true.shape[-1], call["query"].shape[-1]
    short = unit(dtype) if is_short(dtype) else 0.0
    sides = (
        _Side(chain_roundings(length), exponential(call["query"].dtype), 0.0, 1),
        _Side(length + 1, 8 * U, 2 * short, 2),
    )
    npu, other = (_errors(scores, depth, side) for side in sides)
    first, *further = (values_of(x) for x in truths(call) if x is not None)
    open_rows, open_columns = _open(call, scores.true)
    open_rows = open_rows | _overflowing(call, scores)
    result = near(dtype, first, npu.result, other.result)
    expectations: list[Expectation | None] = [unclaimed(result, open_rows | open_columns)]
    for at, true in enumerate(further, 1):
        if "dropout_mask" in call.arguments:  # the plain kernel gives its weights
            weights = near(subject.answer(at).dtype, true, npu.weights, other.weights)
            expectations.append(unclaimed(weights, open_rows))
        else:
            made = _logsumexp(subject, at, true, (npu.log_sum, other.log_sum))
            expectations.append(unclaimed(made, open_rows[..., 0]))
    return tuple(expectations)


def _open(call: OpCall, scores: torch.Tensor) -> tuple[Mask, Mask]:
    """Rows with a score, and columns with a value, that is no number: each kernel of torch has
    its own idea of those."""
    query, key, value = (~call[name].isfinite() for name in ("query", "key", "value"))
    row = query.any(-1, keepdim=True)
    head, column = key.any((-1, -2), keepdim=True), value.any(-2, keepdim=True)
    if scores.dim() > 2 and scores.shape[-3] != head.shape[-3]:
        groups = scores.shape[-3] // head.shape[-3]
        head, column = (mask.repeat_interleave(groups, -3) for mask in (head, column))
    return (row | head).numpy(), column.numpy()


def _overflowing(call: OpCall, scores: Scores) -> Mask:
    """Rows with a score that may overflow on the way."""
    scale = call["scale"]
    scale = call["query"].shape[-1] ** -0.5 if scale is None else abs(float(scale))
    sums = scores.product.amax(-1, keepdim=True) / min(1.0, scale or 1.0)
    return np.asarray(values_of(2 * sums) >= LARGEST)


def _logsumexp(subject: Subject, at: int, true: Floats, sums: tuple[Floats, Floats]) -> Expectation:
    size = 8 * U * np.abs(np.where(np.isfinite(true), true, 0.0))
    npu, other = (np.reshape(error, true.shape) + size for error in sums)
    return near(subject.answer(at).dtype, true, npu, other)


RULES: dict[str, Rule] = dict.fromkeys(
    (
        "scaled_dot_product_attention",
        "_scaled_dot_product_flash_attention_for_cpu",
        "_scaled_dot_product_attention_math",
    ),
    _attention,
)
