# SPDX-License-Identifier: Apache-2.0
"""Sums into chosen elements: scatter_add, index_add, index_put, the gradients of embedding and
of maxima.

The contract stores after each addition, so an element hit h times is rounded h times to the
result's own type: within γ_h(u)·S, u that type's, S the magnitudes of what is summed. Both S and
h are the same op, on magnitudes and on ones. torch rounds as often or less. A sum that may pass
the type's largest number on the way is open. scatter_add sums in fp32 and rounds once. Embedding's
rows may be divided by the number of their uses first: a quotient more, in torch a reciprocal and a
product.
"""

from __future__ import annotations

import torch

from driver.isa import DType
from driver.runtime.torch_types import NPU_TYPES
from golden.bounds.elementwise import true_of
from golden.bounds.exact import by_type, equal, moved
from golden.bounds.expectation import SLACK, Expectation, Rule, Subject, near, unclaimed
from golden.bounds.reductions import finite
from golden.calls import truths
from golden.formats import FLOAT_FORMATS, FloatFormat, Floats
from golden.tensors import values_of

_SUMMED = ("self", "src", "source", "values", "grad_output", "updates")


def _added(subject: Subject) -> tuple[Expectation | None, ...]:
    return _sums(subject, FLOAT_FORMATS[NPU_TYPES[subject.answer().dtype]])


def _added_wide(subject: Subject) -> tuple[Expectation | None, ...]:
    return _sums(subject, FLOAT_FORMATS[DType.FP32])


def _sums(subject: Subject, form: FloatFormat) -> tuple[Expectation | None, ...]:
    """`form`: of the sums on the way."""
    call, dtype = subject.call, subject.answer().dtype
    floats = {
        name: value
        for name, value in call.arguments.items()
        if name in _SUMMED and isinstance(value, torch.Tensor)
    }
    (size,) = truths(call, **{name: finite(x).abs() for name, x in floats.items()})
    ones: dict[str, object] = {name: torch.ones_like(x) for name, x in floats.items()}
    if "self" in ones and len(ones) > 1 and call.arguments.get("reduce") != "prod":
        ones["self"] = torch.zeros_like(floats["self"])  # what nothing is added to stays as it is
    shared = bool(call.arguments.get("scale_grad_by_freq"))
    (hits,) = truths(call, **ones | ({"scale_grad_by_freq": False} if shared else {}))
    assert size is not None
    assert hits is not None

    counts, magnitudes = values_of(hits), values_of(size)

    def error(rounded: FloatFormat) -> Floats:
        grown = (counts + 2 * shared) * rounded.unit_roundoff
        relative = grown / (1 - grown.clip(max=0.5))
        found: Floats = (relative + SLACK) * magnitudes + counts * 2.0**rounded.min_quantum
        return found

    made = near(dtype, true_of(subject), error(form), error(FLOAT_FORMATS[NPU_TYPES[dtype]]))
    return (unclaimed(made, magnitudes + error(form) >= form.max_finite),)


def _put(subject: Subject) -> tuple[Expectation | None, ...]:
    return by_type(_added)(subject) if subject.call["accumulate"] else moved(subject)


def _scatter_reduced(subject: Subject) -> tuple[Expectation | None, ...]:
    call, answer = subject.call, subject.answer()
    kind = call["reduce"]
    if kind in ("amax", "amin") or not answer.is_floating_point():
        return equal(subject)
    return _mean(subject) if kind == "mean" else _added(subject)


def _mean(subject: Subject) -> tuple[Expectation | None, ...]:
    """A sum's bound divided by the count, and the quotient's own rounding, which is one more."""
    call, dtype = subject.call, subject.answer().dtype
    floats = {name: call[name] for name in ("self", "src")}
    (size,) = truths(call, reduce="sum", **{n: finite(x).abs() for n, x in floats.items()})
    (hits,) = truths(call, reduce="sum", **{n: torch.ones_like(x) for n, x in floats.items()})
    assert size is not None
    assert hits is not None
    form, count = FLOAT_FORMATS[NPU_TYPES[dtype]], values_of(hits)
    grown = (count + 1) * form.unit_roundoff
    relative = grown / (1 - grown.clip(max=0.5))
    error = (relative + SLACK) * values_of(size) / count + 2.0 * 2.0**form.min_quantum
    made = near(dtype, true_of(subject), error)
    return (unclaimed(made, values_of(size) * (1 + relative) >= form.max_finite),)


RULES: dict[str, Rule] = {
    "scatter_reduce": _scatter_reduced,
    "scatter_add": by_type(_added_wide),
    **dict.fromkeys(("index_add", "embedding_dense_backward"), by_type(_added)),
    **{f"max_pool{dims}d_with_indices_backward": _added for dims in (2, 3)},
    **{f"adaptive_max_pool{dims}d_backward": _added for dims in (2, 3)},
    **dict.fromkeys(("index_put", "_unsafe_index_put"), _put),
}
