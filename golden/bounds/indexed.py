# SPDX-License-Identifier: Apache-2.0
"""Sums into chosen elements: scatter_add, index_add, index_put, the gradients of embedding and
of maxima.

Sums are added in fp32, in the order of golden.bounds.chains_by_index, and each is rounded once to
its type. torch may round at each addition to the type, and may add in any order: within γ_h(U)·S
after h additions, S the magnitudes of what is summed. A sum that may pass the largest number on the
way is open. Embedding's rows may be divided by the number of their uses first: a quotient more, in
torch a reciprocal and a product, and of 16 bits a rounding to the type. alpha times a source is a
rounding more.
"""

from __future__ import annotations

import numpy as np
import torch

from golden.bounds.chains_by_index import addends_of
from golden.bounds.elementwise import true_of
from golden.bounds.exact import by_type, equal, moved
from golden.bounds.expectation import (
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
    unclaimed,
    unit,
)
from golden.calls import OpCall
from golden.formats import Floats


def _added(subject: Subject) -> tuple[Expectation | None, ...]:
    """A sum; where `reduce` is mean, divided by its count, which is a rounding more."""
    call, dtype = subject.call, subject.answer().dtype
    addends = addends_of(call)
    sums, hits = addends.sums(), addends.hits()
    most, size = int(hits.max(initial=0)), sums.absolute
    before = _roundings_before(call)
    npu = sums.chain_error(most)
    if before:
        once = U * size + hits * TINY
        if is_short(dtype):
            once = once + unit(dtype) * size + hits * least(dtype)
        npu = npu + (1 + gamma(most)) * once
    other = _any_order(dtype, hits + before, size)
    if call.arguments.get("reduce") == "mean":
        kept = (hits == 0) | bool(call["include_self"])
        count = hits + kept
        npu = (npu + U * size) / count + TINY
        other = _any_order(dtype, hits + 1, size) / count
    npu = np.where(hits > 0, npu, 0.0)
    return (near(dtype, true_of(subject), npu, other, peak=size, torch_peak=size),)


def _roundings_before(call: OpCall) -> int:
    """Of an addend before it is added: by torch, which is once more than by the NPU for shares."""
    if call.arguments.get("scale_grad_by_freq"):
        return 2
    return int(call.arguments.get("alpha", 1) != 1)


def _any_order(dtype: torch.dtype, roundings: Floats, size: Floats) -> Floats:
    """The error of sums whose terms are rounded so often to a type."""
    grown = roundings * unit(dtype)
    relative = grown / (1 - grown.clip(max=0.5))
    found: Floats = (relative + SLACK) * size + roundings * least(dtype)
    return found


def _put(subject: Subject) -> tuple[Expectation | None, ...]:
    return by_type(_added)(subject) if subject.call["accumulate"] else moved(subject)


def _scatter_reduced(subject: Subject) -> tuple[Expectation | None, ...]:
    kind, answer = subject.call["reduce"], subject.answer()
    if kind in ("amax", "amin") or not answer.is_floating_point():
        return equal(subject)
    if kind == "prod":  # no lowering has it
        made = near(answer.dtype, true_of(subject), 0.0)
        return (unclaimed(made, np.ones(made.true.shape, np.bool_)),)
    return _added(subject)


RULES: dict[str, Rule] = {
    "scatter_reduce": _scatter_reduced,
    **dict.fromkeys(("scatter_add", "index_add", "embedding_dense_backward"), by_type(_added)),
    **{f"max_pool{dims}d_with_indices_backward": _added for dims in (2, 3)},
    **{f"adaptive_max_pool{dims}d_backward": _added for dims in (2, 3)},
    **dict.fromkeys(("index_put", "_unsafe_index_put"), _put),
}
