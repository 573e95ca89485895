# SPDX-License-Identifier: Apache-2.0
"""Sums into chosen elements: scatter_add, index_add, index_put, the gradients of embedding and
of maxima.

Sums are added in fp32, so an element hit h times is rounded h times to fp32 and once to its type:
within γ_h(U)·S, S the magnitudes of what is summed. Both S and h are the same op, on magnitudes and
on ones. torch may round h times to the type. A sum that may pass the largest number on the way is
open. Embedding's rows may be divided by the number of their uses first: a quotient more, in torch a
reciprocal and a product, and of 16 bits a rounding to the type.
"""

from __future__ import annotations

import torch

from driver.isa import DType
from driver.runtime.torch_types import NPU_TYPES
from golden.bounds.elementwise import true_of
from golden.bounds.exact import by_type, equal, moved
from golden.bounds.expectation import SLACK, Expectation, Rule, Subject, near
from golden.bounds.reductions import finite
from golden.calls import truths
from golden.formats import FLOAT_FORMATS, FloatFormat, Floats
from golden.tensors import values_of

_SUMMED = ("self", "src", "source", "values", "grad_output", "updates")


def _added(subject: Subject) -> tuple[Expectation | None, ...]:
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
    counted: dict[str, object] = {"scale_grad_by_freq": False} if shared else {}
    if "reduce" in call.arguments:
        counted["reduce"] = "sum"  # a product of ones is 1, however many
    (hits,) = truths(call, **ones | counted)
    assert size is not None
    assert hits is not None

    counts, magnitudes = values_of(hits), values_of(size)
    own = FLOAT_FORMATS[NPU_TYPES[dtype]]
    npu = _lost(FLOAT_FORMATS[DType.FP32], counts + 2 * shared, magnitudes)
    if shared and dtype != torch.float32:
        npu = npu + own.unit_roundoff * magnitudes + counts * 2.0**own.min_quantum
    other = _lost(own, counts + 2 * shared, magnitudes)
    return (near(dtype, true_of(subject), npu, other, peak=magnitudes, torch_peak=magnitudes),)


def _lost(form: FloatFormat, roundings: Floats, magnitudes: Floats) -> Floats:
    """The error of sums that are rounded so often to a type."""
    grown = roundings * form.unit_roundoff
    relative = grown / (1 - grown.clip(max=0.5))
    found: Floats = (relative + SLACK) * magnitudes + roundings * 2.0**form.min_quantum
    return found


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
    count, magnitudes = values_of(hits), values_of(size)
    forms = (FLOAT_FORMATS[DType.FP32], FLOAT_FORMATS[NPU_TYPES[dtype]])
    npu, other = (_lost(form, count + 1, magnitudes) / count for form in forms)
    return (near(dtype, true_of(subject), npu, other, peak=magnitudes, torch_peak=magnitudes),)


RULES: dict[str, Rule] = {
    "scatter_reduce": _scatter_reduced,
    **dict.fromkeys(("scatter_add", "index_add", "embedding_dense_backward"), by_type(_added)),
    **{f"max_pool{dims}d_with_indices_backward": _added for dims in (2, 3)},
    **{f"adaptive_max_pool{dims}d_backward": _added for dims in (2, 3)},
    **dict.fromkeys(("index_put", "_unsafe_index_put"), _put),
}
