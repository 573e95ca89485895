# SPDX-License-Identifier: Apache-2.0
"""Scaled dot product attention: softmax(scale·Q·Kᵀ + mask)·V.

All of this is about the softmax of the scores c of golden.bounds.attention_scores, which have an
error ε. It acts like the error of the difference d to the maximum, whose own error is the same for
all and cancels; subtracting, and the product with the scale behind it, add 3u·|d|. With t the sum
of those and of the exponential's relative error, the weight p = e^d/Σ has a relative error of
(A + B)/(1 − B), A = t + t², B = Σ_j p_j·(t_j + t_j²) + S, S the sum's (golden.bounds.softmax), and
3u of the quotient. With ρ all that, the sum over L values is within Σ p·ρ·|V|, and its own
rounding: that of the chain of p·V, and γ_{L+2} of the former.

t + t² is more than e^t − 1 up to a quarter. Large scores have errors beyond that, which may turn a
tie round and give all the weight to a key whose true weight is 0. There a weight is as small as its
own score's error down and all others' up make it, and as large as the reverse: with t for errors

    1/(1 + Σ_j e^(d_j + t_j − d_i + t_i)) ≤ p_i ≤ 1/(1 + Σ_j e^(d_j − t_j − d_i − t_i)),  j ≠ i

Where the products of a score may add up to more than the largest fp32 number, with or without the
scale, what becomes of them depends on the order: nothing is claimed of the row.

The NPU keeps scores and weights in fp32 for all types. torch's flash kernel rounds the weights of
16-bit operands to that type, u16·Σ p·|V| more. Its sums are in any order.

logsumexp: what the scores' errors move log Σ e^c by, the sum's relative error, 2 ULP of the
logarithm and two roundings.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from golden.bounds.attention_scores import Scores, chain_of, scores_of
from golden.bounds.budgets import exponential
from golden.bounds.expectation import (
    FLUSH,
    LARGEST,
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
from golden.bounds.softmax import of_quotient, summing_by_lanes
from golden.calls import OpCall, truths
from golden.formats import Floats, Mask
from golden.tensors import values_of

_LINEAR = 0.25
"""The largest error of a score that counts as a relative one of its exponential."""
_SHORT_EXP = 2.0**-13
"""Relative error of the exponentials of torch's flash kernel for 16-bit operands: measured 2^-14.2
at 0, of every vector of keys."""
_NOTHING = -104.0
"""e^x is 0 in fp32 from here on."""


@dataclass(frozen=True)
class _Side:
    """How the NPU, or torch, computes: what the formulas above leave open."""

    scores: torch.Tensor
    """ε"""
    exponential: float
    summing: torch.Tensor
    """S"""
    values: torch.Tensor
    """The rounding of the sum of true weights times V."""
    rounded: float
    """Relative error of weights that are rounded on the way."""
    least: float
    """What an exponential, or a weight, below the normal range may lose."""


@dataclass(frozen=True)
class _Errors:
    """Of one side: the results, the weights, the logarithms of the weights' sums."""

    result: Floats
    weights: Floats
    log_sum: Floats


def _sides(call: OpCall, scores: Scores, p: torch.Tensor) -> tuple[_Side, _Side]:
    """The NPU's, and torch's."""
    dtype, length = call["query"].dtype, p.shape[-1]
    own = torch.from_numpy(chain_of(p, scores.values).chain_error(length))
    own = own.reshape(*p.shape[:-1], -1)
    short, torch_exp = (2 * unit(dtype), _SHORT_EXP) if is_short(dtype) else (0.0, 8 * U)
    lost = FLUSH + (least(dtype) if is_short(dtype) else 0.0)
    any_order = 2 * gamma(length + 2) * (p @ scores.values.abs())
    summing = torch.tensor(gamma(length + 1))
    npu_sum = summing_by_lanes(p, -1)
    return (
        _Side(scores.npu_error(), exponential(dtype), npu_sum, own, 0.0, TINY),
        _Side(scores.torch_error(dtype), torch_exp, summing, any_order, short, lost),
    )


def _errors(scores: Scores, p: torch.Tensor, side: _Side) -> _Errors:
    d, reach = scores.distances, scores.values.abs()
    term = side.scores + 3 * U * torch.where(d.isfinite(), d.abs(), 0.0) + side.exponential
    above = term + term.square()
    below = (p * above).nan_to_num().sum(-1, keepdim=True) + side.summing
    wrong = p * of_quotient(above, below)
    loose = torch.where(d.isneginf(), 0.0, term).amax(-1, keepdim=True) > _LINEAR
    if loose.any():
        low, high = _hull(d, term * (1 + 4 * U))
        after = 2 * (side.summing + 3 * U)
        wrong = torch.where(loose, torch.maximum(high - p, p - low) + after * high, wrong)
    wrong = wrong + torch.where(d + term > _NOTHING, side.least, p) + side.rounded * (p + wrong)
    spread = (1 + gamma(p.shape[-1] + 2)) * (wrong @ reach) + side.values
    log_sum = (_reach_of_log_sum(d, side.scores) + 2 * below + 8 * U).squeeze(-1)
    return _Errors(*(np.asarray(values_of(x)) for x in (spread + TINY, wrong + TINY, log_sum)))


def _reach_of_log_sum(d: torch.Tensor, error: torch.Tensor) -> torch.Tensor:
    """How far log Σ e^d may move with its terms: a key that weighs nothing moves nothing."""
    lowest, middle, highest = (x.logsumexp(-1, keepdim=True) for x in (d - error, d, d + error))
    reach = torch.maximum(highest - middle, middle - lowest)
    return torch.where(middle.isfinite(), reach, 0.0)


def _hull(d: torch.Tensor, error: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The least and the largest weight of each key, for scores within an error of d."""
    low, high = d - error, d + error
    smallest = torch.sigmoid(low - _others(high)).nan_to_num(nan=0.0)
    largest = torch.sigmoid(high - _others(low)).nan_to_num(nan=0.0)
    return smallest, largest


def _others(x: torch.Tensor) -> torch.Tensor:
    """log Σ e^x over the last dimension without the element itself; −∞ of nothing."""
    nothing = torch.full_like(x[..., :1], -torch.inf)
    before = torch.cat([nothing, x.logcumsumexp(-1)[..., :-1]], -1)
    after = torch.cat([nothing, x.flip(-1).logcumsumexp(-1)[..., :-1]], -1).flip(-1)
    return torch.logaddexp(before, after)


def _attention(subject: Subject) -> tuple[Expectation | None, ...]:
    call, dtype = subject.call, subject.answer().dtype
    scores = scores_of(call)
    p = scores.distances.softmax(-1).nan_to_num()
    npu, other = (_errors(scores, p, side) for side in _sides(call, scores, p))
    first, *further = (x for x in truths(call) if x is not None)
    first = _of_numbers(scores, p @ scores.values, first)
    open_rows, open_columns = _open(call, scores.true)
    open_rows = open_rows | _overflowing(call, scores)
    result = near(dtype, values_of(first), npu.result, other.result)
    expectations: list[Expectation | None] = [unclaimed(result, open_rows | open_columns)]
    for at, true in enumerate(further, 1):
        if "dropout_mask" in call.arguments:  # the plain kernel gives its weights
            of_numbers = values_of(_of_numbers(scores, p, true))
            answer = subject.answer(at).dtype
            weights = near(answer, of_numbers, npu.weights, other.weights)
            expectations.append(unclaimed(weights, open_rows))
        else:
            of_numbers = values_of(_of_numbers(scores, scores.true.logsumexp(-1), true))
            made = _logsumexp(subject, at, of_numbers, (npu.log_sum, other.log_sum))
            expectations.append(unclaimed(made, open_rows[..., 0]))
    return tuple(expectations)


def _of_numbers(scores: Scores, made: torch.Tensor, answer: torch.Tensor) -> torch.Tensor:
    """What is made of scores with a mask, where a row has one that is a number."""
    if scores.mask is None:
        return answer
    some = scores.true.isfinite().any(-1, keepdim=True)
    return torch.where(some if made.dim() == some.dim() else some[..., 0], made, answer)


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
    sums = scores.absolute.amax(-1, keepdim=True) / min(1.0, scale or 1.0)
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
