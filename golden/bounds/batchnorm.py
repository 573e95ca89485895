# SPDX-License-Identifier: Apache-2.0
"""batch_norm, in inference and in training.

*Inference*: (x − m)·(w·r) + b, or x·(w·r) + (b − m·w·r): at most 8 roundings, each of a term no
larger than |x·w·r| + |m·w·r| + |b|.

*Training* brings the K elements of a channel to mean 0 and variance 1 as golden.bounds.norms has it
for rows; torch makes two passes here as well. A running statistic s becomes (1 − p)·s + p·v, p the
momentum and v the mean, or V/(K − 1): within p·Δv + 4u·(|(1 − p)·s| + p·|v|), for the roundings of
both factors, a product and the sum. torch rounds m, w·r and b − m·w·r to a 16-bit type.
"""

from __future__ import annotations

import numpy as np

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
    unclaimed,
    unit,
)
from golden.bounds.norms import bounded, flat, open_affine, short_error, true_values
from golden.bounds.reductions import finite, roundings
from golden.bounds.rows import RowErrors, Rows
from golden.calls import base_name, values_of
from golden.formats import Floats
from golden.problem import FLUSH, Mask


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
    other = 16 * U * size + TINY + short_error(answer, size, 3)
    result = near(answer.dtype, first, 10 * U * size + SLACK * size + TINY, other, peak=size)
    return (result, *(exact(subject.answer(at)) for at in range(1, 1 + len(others))))


def _training(subject: Subject) -> tuple[Expectation | None, ...]:
    call = subject.call
    x = call["input"]
    channels = x.shape[1]
    rows = Rows.of(values_of(x.transpose(0, 1).reshape(channels, -1)), float(call["eps"]))
    affine = [
        flat(call[name], channels, default).T for name, default in (("weight", 1.0), ("bias", 0.0))
    ]
    undecided = rows.infinite | open_affine(*affine)
    weight, bias = (bounded(values) for values in affine)
    npu = rows.errors(roundings(rows.count, x.dim() - 1))
    dtype = subject.answer().dtype
    other = rows.errors(rows.count + 2, stored=unit(dtype) if is_short(dtype) else 0.0)
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
        kind = undecided if at == 0 else rows.infinite
        odd: Mask = np.broadcast_to(kind.reshape(shape), true.shape)
        right = right + short_error(answer, true, 3) + FLUSH * is_short(answer.dtype)
        made = near(answer.dtype, true, left, right, peak=peak)
        expectations.append(unclaimed(made, odd))
    return tuple(expectations)


def _running(
    subject: Subject, rows: Rows, sides: tuple[RowErrors, RowErrors]
) -> list[tuple[Floats, ...]]:
    """Errors of the running mean and variance, of either side."""
    call, count = subject.call, rows.count
    names = [n for n in ("running_mean", "running_var") if call.arguments.get(n) is not None]
    found: list[tuple[Floats, ...]] = []
    for name in names:
        momentum = float(call["momentum"])
        old = np.abs(values_of(finite(call[name])).reshape(-1, 1))
        if name == "running_mean":
            size, wrong = np.abs(rows.mean), [side.shift for side in sides]
        else:
            free = max(count - 1, 1)
            size, wrong = rows.spread / free, [side.spread / free for side in sides]
        rounded = 4 * U * (abs(1 - momentum) * old + abs(momentum) * size) + TINY
        found.append(tuple(abs(momentum) * error * (1 + 4 * U) + rounded for error in wrong))
    return found


RULES: dict[str, Rule] = dict.fromkeys(
    (
        *("batch_norm", "native_batch_norm", "_native_batch_norm_legit_no_training"),
        *("_native_batch_norm_legit", "_native_batch_norm_legit_functional"),
        *("_batch_norm_with_update", "_batch_norm_with_update_functional"),
    ),
    _batch_norm,
)
