# SPDX-License-Identifier: Apache-2.0
"""Upsampling by weights, and windows added up.

*upsample_linear, bilinear, trilinear, bicubic*: along each dimension a result is Σ w·x over T taps,
T 2 or 4. The true weights come from float64 coordinates, as float64 matrices here. The NPU's are
rounded once and its sum has T roundings: with d dimensions within γ_{d·(T+2)}·M, M the same sums
of |w|·|x|. torch computes coordinates r in fp32, within ε = 6u·(n + 1) for an input line of n; a
weight changes by at most 2·|Δr| (|w′| ≤ 1 for linear weights, below 2 for cubic ones), also when
the floor of r does, for the functions are continuous: 2·(T + 1)·ε·max|x| per dimension more, over
the elements that any of these coordinates reaches. In 16 bits it rounds weights, 1 minus them,
products and sums. A linear line that keeps its length is copied, whatever the factor. Where a
number that is not finite meets any weight nothing is claimed: its weight may be 0.

*col2im*: a sum of as many terms as windows reach an element, at most the kernel's size: γ_{K+2}
times the same op on magnitudes. torch adds in the type itself, which may overflow on the way.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from golden.bounds.elementwise import true_of
from golden.bounds.expectation import (
    SLACK,
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
from golden.bounds.reductions import finite
from golden.calls import base_name, truths
from golden.formats import Floats, Mask
from golden.tensors import values_of

Weights = Callable[[Floats, int], Floats]
"""(places on the input's line, its length) → a matrix [result, input]."""


def _linear(places: Floats, length: int) -> Floats:
    inside = np.clip(places, 0, length - 1)[:, None]
    return np.asarray(np.maximum(0.0, 1.0 - np.abs(inside - np.arange(length))))


def _cubic(places: Floats, length: int) -> Floats:
    a, matrix = -0.75, np.zeros((len(places), length))
    start = np.floor(places).astype(int)
    for tap in range(-1, 3):
        x = np.abs(places - start - tap)
        near_by = ((a + 2) * x - (a + 3)) * x**2 + 1
        far = a * (x**3 - 5 * x**2 + 8 * x - 4)
        columns = np.clip(start + tap, 0, length - 1)
        np.add.at(matrix, (np.arange(len(places)), columns), np.where(x <= 1, near_by, far))
    return matrix


_KINDS: dict[str, tuple[Weights, int]] = {
    "upsample_linear1d": (_linear, 2),
    "upsample_bilinear2d": (_linear, 2),
    "upsample_trilinear3d": (_linear, 2),
    "upsample_bicubic2d": (_cubic, 4),
}
_FACTORS = ("scales", "scales_d", "scales_h", "scales_w")


def _places(length: int, count: int, factor: float | None, *, corners: bool) -> Floats:
    at = np.arange(count, dtype=np.float64)
    if corners:
        return at * ((length - 1) / (count - 1) if count > 1 else 0.0)
    step = 1 / factor if factor is not None and factor > 0 else length / count
    return np.asarray(step * (at + 0.5) - 0.5)


def _reached(weights: Weights, places: Floats, length: int, taps: int, shift: float) -> Mask:
    """[result, input]: which elements may have a weight, with coordinates that are a little off."""
    off = max(shift, 1e-3)
    moved = [weights(places + by, length) != 0 for by in (0.0, off, -off)]
    inside = np.clip(places, 0, length - 1)[:, None]
    near_by = np.abs(np.arange(length) - inside) <= taps // 2
    return np.asarray(np.logical_or.reduce([*moved, near_by]))


def _largest(reached: Mask, magnitudes: Floats, at: int) -> Floats:
    """The largest magnitude that each result reaches along a dimension."""
    order = np.argsort(~reached, axis=1, kind="stable")[:, : int(reached.sum(1).max(initial=1))]
    kept = np.take_along_axis(reached, order, axis=1)
    lines = np.moveaxis(magnitudes, at, 0)
    found = np.zeros((len(reached), *lines.shape[1:]))
    for column, inside in zip(order.T, kept.T, strict=True):
        at_column = lines[column]
        at_column[~inside] = 0.0
        np.maximum(found, at_column, out=found)
    return np.moveaxis(found, 0, at)


def _resampled(subject: Subject) -> tuple[Expectation | None, ...]:
    call, answer = subject.call, subject.answer()
    weights, taps = _KINDS[base_name(call.op)]
    factors = [call[name] for name in _FACTORS if name in call.arguments]
    dims = len(factors)
    x = values_of(finite(call["self"]))
    true, size, largest = x, np.abs(x), np.abs(x)
    odd = (~np.isfinite(values_of(call["self"].double()))).astype(np.float64)
    moved = 0.0
    for at, factor in enumerate(factors, x.ndim - dims):
        length, count = x.shape[at], answer.shape[at]
        copied = weights is _linear and length == count
        places = _places(length, count, factor, corners=copied or call["align_corners"])
        matrix = weights(places, length)
        shift = 6 * U * (length + 1)
        reached = _reached(weights, places, length, taps, shift)
        true, size, odd = (
            np.moveaxis(np.tensordot(m, array, (1, at)), 0, at)
            for m, array in ((matrix, true), (np.abs(matrix), size), (reached * 1.0, odd))
        )
        largest = _largest(reached, largest, at)
        moved += 2 * (taps + 1) * shift
    npu = gamma(dims * (taps + 2)) * size + dims * taps * TINY + SLACK * 1e3 * largest
    other = npu + moved * largest
    if is_short(answer.dtype):
        other = other + dims * unit(answer.dtype) * (4 * size + 2 * largest)
    made = near(answer.dtype, true, npu, other, peak=size)
    return (unclaimed(made, odd > 0),)


def _added(subject: Subject) -> tuple[Expectation | None, ...]:
    call, dtype = subject.call, subject.answer().dtype
    (magnitudes,) = truths(call, self=finite(call["self"]).abs())
    assert magnitudes is not None
    size, count = values_of(magnitudes), prod(call["kernel_size"])
    error = gamma(count + 2) * size + TINY * count
    other = error + (count * unit(dtype) * size if is_short(dtype) else 0.0)
    short = size if is_short(dtype) else 0.0
    return (near(dtype, true_of(subject), error, other, peak=size, torch_peak=short),)


RULES: dict[str, Rule] = {**dict.fromkeys(_KINDS, _resampled), "col2im": _added}
