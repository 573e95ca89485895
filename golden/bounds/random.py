# SPDX-License-Identifier: Apache-2.0
"""Random ops: the bits that docs/numerics.md gives each element, or a bound around the real number.

The answers are golden.draws', not torch's. Exponential: log of O within its budget, 2 ULP or 4u
relative (u = 2^-24), then one division. Normal, z = R·c: R = √(−2·log O) halves the
logarithm's relative error and adds a rounding, 3u. The angle's rest in a quadrant, at most π/4,
comes from an integer (a rounding), times a rounded constant, rounded: 3u·π/4 < 2.4u; sine and
cosine have 2 ULP, at most 4u near 1: c is within 6.4u. The product is rounded, u. So z is within
R·6.4u + |z|·4u, both at most R: 10.4u·R, and 11u·R with the products of errors.
"""

from __future__ import annotations

import numpy as np

from golden import draws, philox
from golden.bounds.exact import moved
from golden.bounds.expectation import (
    TINY,
    Expectation,
    Rule,
    Subject,
    U,
    exact,
    near,
    unclaimed,
)
from golden.calls import draw_of

_LOG = 4 * U
_NORMAL = 11 * U
_RACE = 16 * U
"""Two quotients of a weight and an exponential number, each within (4 + 1 + 1)·u, and slack."""


def _normal(subject: Subject) -> tuple[Expectation | None, ...]:
    draw = draw_of(subject.call, subject.answers)
    z, mean, std = draws.true_normal(draw)
    count = len(z)
    radius = np.sqrt(-2 * np.log(philox.open_unit(draw.words(count + count % 2)[0::2])))
    error = np.repeat(radius, 2)[:count] * _NORMAL * np.abs(std) + TINY
    shape, dtype = tuple(subject.answer().shape), subject.answer().dtype
    true = z * std + mean
    return (near(dtype, true.reshape(shape), error.reshape(shape)),)


def _exponential(subject: Subject) -> tuple[Expectation | None, ...]:
    draw = draw_of(subject.call, subject.answers)
    true = draws.true_exponential(draw.words(), draw["lambd"])
    true = true.reshape(tuple(subject.answer().shape))
    return (near(subject.answer().dtype, true, np.abs(true) * (_LOG + U) + TINY),)


def _multinomial(subject: Subject) -> tuple[Expectation | None, ...]:
    """The category drawn; open where the next one is so near that rounding decides."""
    draw, answer = draw_of(subject.call, subject.answers), subject.answer()
    ranked = -np.sort(-draws.race(draw), axis=-1)
    close = ranked[..., 1:] >= ranked[..., :-1] * (1 - _RACE)
    edge = np.zeros((*close.shape[:-1], 1), np.bool_)
    behind = np.concatenate((close, edge), axis=-1)
    before = np.concatenate((edge, close), axis=-1)
    taken = (behind | before)[:, 0, : draw["num_samples"]]
    tied = behind[..., 0] if draw["replacement"] else taken
    return (unclaimed(exact(answer), tied.reshape(tuple(answer.shape))),)


RULES: dict[str, Rule] = {
    **dict.fromkeys(draws.DRAWS, moved),
    **dict.fromkeys(("normal", "normal_functional", "randn", "randn_like"), _normal),
    "exponential": _exponential,
    "multinomial": _multinomial,
}
