# SPDX-License-Identifier: Apache-2.0
"""Rules for the ops of users (docs/custom-ops.md), where the true value is the reference's own in
float64. A rule for anything else is a function of a Subject, as those of the other files."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from driver.errors import InputError
from golden.bounds import exact
from golden.bounds.elementwise import running, true_of
from golden.bounds.expectation import (
    FLUSH,
    Expectation,
    Rule,
    Subject,
    is_short,
    near,
    ulp,
    unclaimed,
    unit,
)
from golden.calls import OpCall

__all__ = ["equal", "roundings", "ulps"]


def equal(subject: Subject) -> tuple[Expectation | None, ...]:
    """The reference's own result: each step is a primitive with one result. Of elements with an
    operand that is no finite number nothing is claimed."""
    found = exact.equal(subject)
    infinite = [~torch.isfinite(x) for x in subject.call.tensors() if x.is_floating_point()]
    made: list[Expectation | None] = []
    for expectation in found:
        if expectation is None or not infinite:
            made.append(expectation)
            continue
        shape = expectation.true.shape
        anywhere = np.zeros(shape, np.bool_)
        for mask in infinite:
            try:
                anywhere |= np.broadcast_to(mask.numpy(), shape)
            except ValueError:  # the op is not one of single elements
                anywhere |= bool(mask.any())
        made.append(unclaimed(expectation, anywhere))
    return tuple(made)


def ulps(count: float) -> Rule:
    """Within so many ULP of fp32 of the true value, before the rounding to the result's type; the
    reference within as many and two roundings to its own type."""
    if not isinstance(count, int | float) or not count > 0:
        raise InputError("own.ulps", "count", _shown(count), "a number above 0, as own.ulps(2)")

    def rule(subject: Subject) -> tuple[Expectation | None, ...]:
        dtype, true = subject.answer().dtype, true_of(subject)
        error = count * ulp(true)
        other = error + FLUSH
        if is_short(dtype):
            other = other + 2 * unit(dtype) * np.abs(np.where(np.isfinite(true), true, 0.0))
        return (near(dtype, true, error, other),)

    return rule


def roundings(count: int, terms: Callable[[OpCall], torch.Tensor]) -> Rule:
    """A sum of products: `count` roundings, each relative to what `terms` computes from the call
    (`call.tensors()` are its tensors): the sum of the magnitudes that each element adds up."""
    if not isinstance(count, int) or count < 1:
        raise InputError("own.roundings", "count", _shown(count), "an int of at least 1")
    if not callable(terms):
        raise InputError("own.roundings", "terms", terms, "a function of the call")
    return running(terms, count)


def _shown(value: object) -> object:
    """A number or a text as it is, of anything else the type."""
    return value if isinstance(value, int | float | str) else type(value).__name__
