# SPDX-License-Identifier: Apache-2.0
"""The functions whose vector programs promise an accuracy: domain, truth in float64, shape.

Knows formulas and names of programs, and nothing of how a program computes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Pairs = Callable[[np.random.Generator, int], tuple[Floats, Floats]]

_EVERYWHERE = (-math.inf, math.inf)
TANH_END = 9.010914
"""From this argument on tanh is 1 in fp32."""


@dataclass(frozen=True)
class Function:
    """What a program approximates. Outside its domain no accuracy is promised."""

    name: str
    true: Callable[..., Floats]
    domain: tuple[float, float] = _EVERYWHERE
    text: str = "everywhere"
    """The domain as the page states it."""
    monotonic: tuple[float, float] | None = None
    """Where it is monotonic."""
    direction: int = 1
    ends: tuple[float, ...] = ()
    """Numbers whose neighbourhood deserves a look: where the result over- or underflows."""
    programs: Mapping[str, str] = field(default_factory=dict)
    """Programs for results of a 16-bit format, if shorter ones exist."""
    pairs: Pairs | None = None
    """Operands of a function of two, at random."""

    def program(self, form: str) -> str:
        """The program that computes it for results of this format."""
        return self.programs.get(form, self.name)

    def inside(self, x: Floats) -> npt.NDArray[np.bool_]:
        """Where accuracy is promised; NaNs count."""
        low, high = self.domain
        return ~((x < low) | (x > high))


def _each(function: Callable[[float], float], x: Floats) -> Floats:
    """A function of the math module on an array."""
    return np.array([function(value) for value in x.ravel().tolist()]).reshape(x.shape)


def _sigmoid(x: Floats) -> Floats:
    e = np.exp(-np.abs(x))
    share: Floats = np.where(x < 0, e, 1.0) / (1 + e)
    return share


def _gate(x: Floats, share: Floats) -> Floats:
    """x·share; where the share's true value is below every number, ∞·0 is a NaN as in torch."""
    return np.where(np.isneginf(x), np.nan, x * share)


def _gelu_erf(x: Floats) -> Floats:
    return _gate(x, 0.5 * _each(math.erfc, -x / math.sqrt(2)))


def _gelu_tanh(x: Floats) -> Floats:
    return _gate(x, _sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def _softplus(x: Floats) -> Floats:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _power_pairs(rng: np.random.Generator, count: int) -> tuple[Floats, Floats]:
    """A third each: results over the whole range, bases around 1, any magnitudes."""
    third = count // 3 + 1
    wide = np.exp(rng.uniform(-87, 88, third))
    near = 1 + rng.uniform(-0.4, 0.5, third) * 2.0 ** -rng.integers(0, 22, third)
    base = np.concatenate([wide, near]).astype(np.float32).astype(np.float64)
    with np.errstate(divide="ignore"):
        exponent = rng.uniform(-104, 89, base.size) / np.log(base)
    signs = rng.choice([-1.0, 1.0], third)
    any_base = np.exp2(rng.uniform(-149, 128, third)) * signs
    any_exponent = np.where(signs < 0, rng.integers(-9, 10, third), rng.normal(size=third) * 9)
    return (
        np.concatenate([base, any_base])[:count],
        np.nan_to_num(np.concatenate([exponent, any_exponent]))[:count],
    )


def _angle_pairs(rng: np.random.Generator, count: int) -> tuple[Floats, Floats]:
    """Points of any direction and distance."""
    size = np.exp2(rng.uniform(-120, 120, count))
    ratio = np.exp2(rng.normal(size=count) * 8)
    signs = rng.choice([-1.0, 1.0], (2, count))
    return signs[0] * size, signs[1] * np.clip(size * ratio, 2.0**-140, 2.0**127)


_PI_LIMIT = 2.0**16 * math.pi
_CIRCLE_ALONE = "\\|x\\| ≤ 2¹⁶·π"
_CIRCLE = "\\|x\\| ≤ 2¹⁶·π; beyond, within ±1"

FUNCTIONS: tuple[Function, ...] = (
    Function("rsqrt", lambda x: 1 / np.sqrt(x), monotonic=(1e-45, 3.4e38), direction=-1),
    Function("exp", np.exp, monotonic=_EVERYWHERE, ends=(88.72284, 87.33655, 103.97208)),
    Function("exp2", np.exp2, monotonic=_EVERYWHERE, ends=(128.0, 126.0, 149.0, 150.0)),
    Function("expm1", np.expm1, monotonic=_EVERYWHERE, ends=(88.72284, 17.32868)),
    Function("log", np.log, monotonic=(1e-45, 3.4e38)),
    Function("log2", np.log2, monotonic=(1e-45, 3.4e38)),
    Function("log10", np.log10, monotonic=(1e-45, 3.4e38)),
    Function("log1p", np.log1p, monotonic=(-1.0, 3.4e38)),
    Function("sin", np.sin, (-_PI_LIMIT, _PI_LIMIT), _CIRCLE, (-1.57, 1.57)),
    Function("cos", np.cos, (-_PI_LIMIT, _PI_LIMIT), _CIRCLE, (0.0, 3.14), -1),
    Function("tan", np.tan, (-_PI_LIMIT, _PI_LIMIT), _CIRCLE_ALONE, (-1.57, 1.57)),
    Function("asin", np.arcsin, monotonic=(-1.0, 1.0)),
    Function("acos", np.arccos, monotonic=(-1.0, 1.0), direction=-1),
    Function("atan", np.arctan, monotonic=_EVERYWHERE, ends=(0.41421356, 1.0, 2.4142136)),
    Function("atan2", np.arctan2, pairs=_angle_pairs),
    Function("sinh", np.sinh, monotonic=_EVERYWHERE, ends=(89.415985, 88.72284)),
    Function("cosh", np.cosh, monotonic=(0.0, math.inf), ends=(89.415985, 88.72284)),
    Function("asinh", np.arcsinh, monotonic=_EVERYWHERE, ends=(2.0**24,)),
    Function("acosh", np.arccosh, monotonic=(1.0, math.inf), ends=(1.0, 2.0**24)),
    Function("atanh", np.arctanh, monotonic=(-1.0, 1.0), ends=(1.0,)),
    Function("tanh", np.tanh, monotonic=_EVERYWHERE, ends=(TANH_END,)),
    Function("sigmoid", _sigmoid, monotonic=_EVERYWHERE, ends=(103.97208, 87.33655)),
    Function(
        "erf",
        lambda x: _each(math.erf, x),
        monotonic=_EVERYWHERE,
        ends=(3.9192059,),
    ),
    Function("pow", np.float_power, pairs=_power_pairs),
    Function("softplus", _softplus, monotonic=_EVERYWHERE),
    Function(
        "silu",
        lambda x: _gate(x, _sigmoid(x)),
        monotonic=(-1.27, math.inf),
        ends=(87.33655, 103.97208, 110.0),
        programs={"fp16": "silu_16", "bf16": "silu_16"},
    ),
    Function(
        "gelu_erf",
        _gelu_erf,
        monotonic=(-0.75, math.inf),
        ends=(13.0, 14.5, 15.0),
        programs={"fp16": "gelu_erf_16", "bf16": "gelu_erf_16"},
    ),
    Function(
        "gelu_tanh",
        _gelu_tanh,
        monotonic=(-0.75, math.inf),
        ends=(10.0, 11.0),
        programs={"fp16": "gelu_tanh_16", "bf16": "gelu_tanh_16"},
    ),
)
