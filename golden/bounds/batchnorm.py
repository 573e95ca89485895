# SPDX-License-Identifier: Apache-2.0
"""batch_norm, in inference and in training.

*Inference*: (x − m)·(w·r) + b, or x·(w·r) + (b − m·w·r): at most 8 roundings, each of a term no
larger than |x·w·r| + |m·w·r| + |b|.

*Training* brings the K elements of a channel to mean 0 and variance 1 as golden.bounds.norms has it
for rows; torch makes two passes here as well. A running statistic s becomes (1 − p)·s + p·v, p the
momentum and v the mean, or V/(K − 1): within p·Δv + 4u·(|(1 − p)·s| + p·|v|), for the roundings of
both factors, a product and the sum. torch rounds m, w·r and b − m·w·r to a 16-bit type.

torch takes p, and then 1 − p, in the statistic's type, u' its unit roundoff. So 1 − p, multiplied,
is off by γ'_3·|1 − p| and, for p's own rounding, by u'·p·(1 + γ'_3): more than a fraction of 1 − p
when p is near 1, and more than one of the result when the two terms cancel. p·v has three such
roundings with the sum's, and three more where v is a variance: V, K − 1 and their quotient.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from golden.bounds.expectation import (
    FLUSH,
    SLACK,
    TINY,
    Expectation,
    Rule,
    Subject,
    U,
    exact,
    gamma,
    is_short,
    near,
    unclaimed,
    unit,
)
from golden.bounds.norms import bounded, flat, open_affine, short_error, true_values
from golden.bounds.reductions import finite, roundings
from golden.bounds.rows import RowErrors, Rows
from golden.calls import base_name
from golden.formats import Floats, Mask
from golden.tensors import values_of


def _batch_norm(subject: Subject) -> tuple[Expectation | None, ...]:
    always = base_name(subject.call.op) != "_native_batch_norm_legit_no_training"
    training = subject.call.arguments.get("training", always)
    return _training(subject) if training else _inference(subject)


def _inference(subject: Subject) -> tuple[Expectation | None, ...]:
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
    first, *others = true_values(subject)
    answer = subject.answer()
    other = 8 * U * size + TINY + short_error(answer, size, 3)
    result = near(answer.dtype, first, 8 * U * size + SLACK * size + TINY, other, peak=size)
    return (result, *(exact(subject.answer(at)) for at in range(1, 1 + len(others))))


def _training(subject: Subject) -> tuple[Expectation | None, ...]:
    call = subject.call
    x = call["input"]
    channels = x.shape[1]
    rows = Rows.of(values_of(x.transpose(0, 1).reshape(channels, -1)), float(call["eps"]))
    affine = [
        flat(call[name], channels, default).T for name, default in (("weight", 1.0), ("bias", 0.0))
    ]
    affine_open = open_affine(*affine)
    weight, bias = (bounded(values) for values in affine)
    npu = rows.errors(roundings(x.shape[0], *x.shape[2:]))
    dtype = subject.answer().dtype
    other = rows.two_pass_errors(rows.count + 2, unit(dtype) if is_short(dtype) else 0.0)
    reach = np.abs(rows.x) + np.abs(rows.mean)
    applied = other.applied(rows, weight, reach) * 4
    if is_short(dtype):
        applied = applied * (3 * unit(dtype) / U)
    order = (channels, x.shape[0], *x.shape[2:])
    results = [
        np.moveaxis(error.reshape(order), 0, 1)
        for error in (npu.result(rows, weight, bias), other.result(rows, weight, bias) + applied)
    ]
    errors = [(*results,), (npu.shift, other.shift), (npu.root, other.root)]
    errors += _running(subject, rows, (npu, other))
    limit = rows.spread + rows.absolute
    expectations: list[Expectation | None] = []
    for at, true in enumerate(true_values(subject)):
        answer = subject.answer(at)
        if not answer.is_floating_point():
            expectations.append(exact(answer))
            continue
        left, right = (np.reshape(error, true.shape) for error in errors.pop(0))
        shape = [1, -1, *[1] * (x.dim() - 2)] if at == 0 else [-1]
        peak: Floats = np.broadcast_to(limit.reshape(shape), true.shape)
        odd: Mask = np.broadcast_to(rows.infinite.reshape(shape), true.shape)
        if at == 0:  # ∞ − ∞ is NaN in every formula, but the mean may be either
            odd = (odd & ~np.isnan(true)) | np.broadcast_to(affine_open.reshape(shape), true.shape)
        right = right + short_error(answer, true, 3) + FLUSH * is_short(answer.dtype)
        made = near(answer.dtype, true, left, right, peak=peak)
        expectations.append(unclaimed(made, odd))
    return tuple(expectations)


def _running(
    subject: Subject, rows: Rows, sides: tuple[RowErrors, RowErrors]
) -> list[tuple[Floats, ...]]:
    """Errors of the running mean and variance, of the NPU and of torch."""
    call, free = subject.call, max(rows.count - 1, 1)
    found: list[tuple[Floats, ...]] = []
    for name, steps in (("running_mean", 3), ("running_var", 6)):
        old = call.arguments.get(name)
        if old is None:
            continue
        mean = name == "running_mean"
        size = np.abs(rows.mean) if mean else rows.spread / free
        npu, other = (side.shift if mean else side.spread / free for side in sides)
        terms = _Terms(float(call["momentum"]), values_of(finite(old)).reshape(-1, 1), size)
        found.append((terms.npu(npu), terms.torch(other, unit(old.dtype), steps)))
    return found


@dataclass(frozen=True)
class _Terms:
    """(1 − p)·s + p·v."""

    momentum: float
    old: Floats
    fresh: Floats

    def npu(self, wrong: Floats) -> Floats:
        """Error for one of v."""
        p, q = abs(self.momentum), abs(1 - self.momentum)
        rounded = 4 * U * (q * np.abs(self.old) + p * np.abs(self.fresh))
        return np.asarray(p * wrong * (1 + 4 * U) + rounded + TINY)

    def torch(self, wrong: Floats, u: float, steps: int) -> Floats:
        """Likewise, for factors of unit roundoff u and `steps` roundings of p·v."""
        p, q = abs(self.momentum), abs(1 - self.momentum)
        first, second = gamma(3, u), gamma(steps, u)
        kept = (first * q + u * (1 + first) * p) * np.abs(self.old)
        added = p * (wrong * (1 + second) + second * np.abs(self.fresh))
        return np.asarray(kept + added + TINY)


RULES: dict[str, Rule] = dict.fromkeys(
    (
        *("batch_norm", "native_batch_norm", "_native_batch_norm_legit_no_training"),
        *("_native_batch_norm_legit", "_native_batch_norm_legit_functional"),
        *("_batch_norm_with_update", "_batch_norm_with_update_functional"),
    ),
    _batch_norm,
)
