# SPDX-License-Identifier: Apache-2.0
"""Ops whose answer is a matter of definition, not of rounding: equality with torch.

Moves and choices of elements, comparisons, logic, integers. What an op leaves open is left open
here: what a float becomes that its integer type does not hold. Positions are in positions.py.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from golden.bounds.expectation import (
    Admits,
    Expectation,
    Interval,
    Rule,
    Subject,
    exact,
    torch_open,
)
from golden.formats import Mask, Values
from golden.tensors import values_of


def equal(subject: Subject) -> tuple[Expectation | None, ...]:
    """Every output as torch has it; the sign of a zero is open."""
    return tuple(None if x is None else exact(x) for x in subject.answers)


def moved(subject: Subject) -> tuple[Expectation | None, ...]:
    """Every output as torch has it, signs of zeros included."""
    return tuple(None if x is None else exact(x, signed_zeros=True) for x in subject.answers)


def converted(subject: Subject) -> tuple[Expectation | None, ...]:
    """A conversion: one rounding, towards zero, or modulo the integer type's range, as in C++20.

    Where C++ leaves it undefined, a float that the integer type has no number for, torch is free;
    the NPU has the nearest int32 or int64, 0 for a NaN, and its low byte for a type of 8 bits.
    """
    answer = subject.answer()
    expectation = exact(answer, signed_zeros=True)
    source = subject.call.tensors()[-1 if "src" in subject.call.arguments else 0]
    values = np.broadcast_to(values_of(source), expectation.true.shape)
    to_integer = not answer.is_floating_point() and answer.dtype != torch.bool
    if source.is_floating_point() and to_integer:
        return (_whole(expectation, values, answer.dtype),)
    return (expectation,)


def _whole(expectation: Expectation, values: np.ndarray, dtype: torch.dtype) -> Expectation:
    outside = _outside(values, dtype)
    if not outside.any():
        return expectation
    info = torch.iinfo(torch.int64 if dtype is torch.int64 else torch.int32)
    above, below = values >= info.max, values <= info.min
    inside = np.trunc(np.where(above | below | np.isnan(values), 0.0, values)).astype(np.int64)
    words = np.where(above, info.max, np.where(below, info.min, inside))
    return torch_open(exact(torch.from_numpy(words).to(dtype)), outside)


def _outside(values: np.ndarray, dtype: torch.dtype) -> Mask:
    """Floats that are no number of an integer type after rounding towards zero; NaN."""
    info = torch.iinfo(dtype)
    with np.errstate(invalid="ignore"):
        inside = (values > info.min - 1) | (values == info.min)  # float64 has no −2⁶³ − 1
        return np.asarray(~(inside & (values < info.max + 1)))


def by_type(rounded: Rule) -> Rule:
    """`rounded` for a floating-point result, equality for others."""

    def rule(subject: Subject) -> tuple[Expectation | None, ...]:
        floating = subject.answer().is_floating_point()
        return rounded(subject) if floating else equal(subject)

    return rule


def distinct(subject: Subject) -> tuple[Expectation | None, ...]:
    """Each NaN is a value of its own, after the others; which one an element is, is open."""
    answers, source = [subject.answer(at) for at in range(3)], subject.call["self"]
    values, inverse, counts = map(exact, answers)
    if source.is_floating_point() and inverse.true.size:
        unordered = source.isnan().numpy()
        kinds, count = len(answers[0]), int(np.count_nonzero(unordered))
        low = np.where(unordered, kinds - count, inverse.npu.low)
        inverse = _between(answers[1], low, np.where(unordered, kinds - 1, inverse.npu.high))
        inverse = replace(inverse, chosen=_different_at(unordered))
    return values, inverse, counts


def _different_at(where: Mask) -> Admits:
    """Whether the elements there are all different; others are right."""

    def admits(values: Values) -> Mask:
        _, kinds, counts = np.unique(values[where], return_inverse=True, return_counts=True)
        right = np.ones(values.shape, np.bool_)
        right[where] = counts[kinds] == 1
        return right

    return admits


def _between(answer: torch.Tensor, low: Values, high: Values) -> Expectation:
    """Integers that may lie anywhere from low to high."""
    no = np.zeros(low.shape, np.bool_)
    admissible = Interval(low, high, no, no)
    return Expectation(values_of(answer), admissible, admissible)
