# SPDX-License-Identifier: Apache-2.0
"""Bessel and Airy functions: polynomials near zero, asymptotic forms with fitted factors beyond."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from driver.torch_device.formulas import coefficients
from driver.torch_device.formulas.coefficients import FittedPolynomial
from driver.torch_device.formulas.special import evaluate, floating, rounded

Tensor = torch.Tensor

_FAR = 8.0
"""Where the asymptotic forms of J, Y and I begin; K's begin at 2, Airy's at ±2."""
_NEAR: dict[str, FittedPolynomial] = {
    "j0": coefficients.J0,
    "j1": coefficients.J1,
    "y0": coefficients.Y0,
    "y1": coefficients.Y1,
}
_WAVES = {
    0: (coefficients.BESSEL_P0, coefficients.BESSEL_Q0),
    1: (coefficients.BESSEL_P1, coefficients.BESSEL_Q1),
}
_GROWING = {
    0: (coefficients.I0E, coefficients.I0E_FAR),
    1: (coefficients.I1E, coefficients.I1E_FAR),
}
_FALLING = {0: (coefficients.K0, coefficients.K0_FAR), 1: (coefficients.K1, coefficients.K1_FAR)}


# ---------------------------------------------------------------------- J and Y
def _waves(order: int, size: Tensor) -> tuple[Tensor, Tensor]:
    """J and Y for large numbers: √(2 ÷ πx)·(P·cos χ − Q·sin χ), and with + and sin, cos.

    χ = x − π/4 − order·π/2; its sine and cosine from those of x, so that χ is not rounded.
    """
    p, q = _WAVES[order]
    inverse = _FAR / size
    square = inverse * inverse
    even, odd = evaluate(p, square), evaluate(q, square) * inverse
    sine, cosine = size.sin(), size.cos()
    if order == 0:
        cos, sin = cosine + sine, sine - cosine
    else:
        cos, sin = sine - cosine, -(sine + cosine)
    scale = (size * math.pi).rsqrt()  # √(2 ÷ πx) ÷ √2
    return scale * (even * cos - odd * sin), scale * (even * sin + odd * cos)


def _j(order: int, x: Tensor) -> Tensor:
    """For x ≥ 0 in fp32."""
    near = evaluate(_NEAR[f"j{order}"], x * x)
    near = x * near if order else near
    return torch.where(x < _FAR, near, torch.where(x.isinf(), 0.0, _waves(order, x)[0]))


def bessel_j(order: int, self: Tensor) -> Tensor:
    """The Bessel function of the first kind."""
    x = floating(self)
    found = _j(order, x.abs())
    return rounded(torch.where(x < 0, -found, found) if order else found, self)


def bessel_y(order: int, self: Tensor) -> Tensor:
    """The Bessel function of the second kind; NaN below 0, −∞ at 0."""
    x = floating(self)
    near = evaluate(_NEAR[f"y{order}"], x * x)
    logarithm = _j(order, x) * x.log()
    near = (
        (x * near + (logarithm - 1 / x) * (2 / math.pi))
        if order
        else near + logarithm * (2 / math.pi)
    )
    found = torch.where(x < _FAR, near, torch.where(x.isinf(), 0.0, _waves(order, x)[1]))
    found = torch.where(x == 0, -math.inf, found)
    return rounded(torch.where(x < 0, math.nan, found), self)


def spherical_bessel_j0(self: Tensor) -> Tensor:
    """sin(x) ÷ x"""
    x = floating(self)
    found = torch.where(x == 0, 1.0, torch.where(x.isinf(), 0.0, x.sin() / x))
    return rounded(found, self)


# ---------------------------------------------------------------------- I and K
def _scaled_i(order: int, size: Tensor) -> Tensor:
    """e^(−x)·I(x) for x ≥ 0 in fp32."""
    near, far = _GROWING[order]
    low = evaluate(near, size)
    low = size * low if order else low
    return torch.where(size < _FAR, low, evaluate(far, _FAR / size) * size.rsqrt())


def bessel_i(order: int, scaled: bool, self: Tensor) -> Tensor:
    """The modified Bessel function of the first kind, times e^(−|x|) if scaled; else NaN of an
    infinity, as CPU torch has it."""
    x = floating(self)
    size = x.abs()
    found = _scaled_i(order, size)
    if not scaled:
        half = (size * 0.5).exp()  # in two factors: e^x alone overflows before I does
        found = found * half * half
    return rounded(torch.where(x < 0, -found, found) if order else found, self)


def bessel_k(order: int, scaled: bool, self: Tensor) -> Tensor:
    """The modified Bessel function of the second kind, times e^x if scaled."""
    x = floating(self)
    near, far = _FALLING[order]
    bent = (x * 0.5).log() * _scaled_i(order, x) * x.exp()
    low = evaluate(near, x * x)
    low = low / x + bent if order else low - bent
    high = evaluate(far, 2 / x) * x.rsqrt()
    low, high = (low * x.exp(), high) if scaled else (low, high * (-x).exp())
    found = torch.where(x == 0, math.inf, torch.where(x <= 2, low, high))
    return rounded(torch.where(x < 0, math.nan, found), self)


# ---------------------------------------------------------------------- Airy
def airy_ai(self: Tensor) -> Tensor:
    """Airy's function: falling for positive numbers, a wave for negative ones."""
    x = floating(self)
    size = x.abs().clamp(min=1)
    root = size.sqrt()
    phase = size * root * (2 / 3)
    inverse = _AIRY_PHASE / phase
    square = inverse * inverse
    fourth = root.sqrt()
    right = evaluate(coefficients.AIRY_RIGHT, inverse) * (-phase).exp()
    right = right / fourth * (0.5 / math.sqrt(math.pi))
    sine, cosine = phase.sin(), phase.cos()  # of phase + π/4: sums of these, ÷ √2
    even, odd = evaluate(coefficients.AIRY_F, square), evaluate(coefficients.AIRY_G, square)
    left = (sine + cosine) * even - (cosine - sine) * odd * inverse
    left = left / fourth * (1 / math.sqrt(2 * math.pi))
    middle = evaluate(coefficients.AIRY, x)
    found = torch.where(x > 2, right, torch.where(x < -2, left, middle))
    return rounded(torch.where(x.isinf(), torch.where(x > 0, 0.0, math.nan), found), self)


_AIRY_PHASE = 2 / 3 * 8**0.5

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "i0": partial(bessel_i, 0, False),
    "special_i0e": partial(bessel_i, 0, True),
    "special_i1": partial(bessel_i, 1, False),
    "special_i1e": partial(bessel_i, 1, True),
    "special_bessel_j0": partial(bessel_j, 0),
    "special_bessel_j1": partial(bessel_j, 1),
    "special_bessel_y0": partial(bessel_y, 0),
    "special_bessel_y1": partial(bessel_y, 1),
    "special_modified_bessel_i0": partial(bessel_i, 0, False),
    "special_modified_bessel_i1": partial(bessel_i, 1, False),
    "special_modified_bessel_k0": partial(bessel_k, 0, False),
    "special_modified_bessel_k1": partial(bessel_k, 1, False),
    "special_scaled_modified_bessel_k0": partial(bessel_k, 0, True),
    "special_scaled_modified_bessel_k1": partial(bessel_k, 1, True),
    "special_spherical_bessel_j0": spherical_bessel_j0,
    "special_airy_ai": airy_ai,
}
DEFINITIONS: dict[str, Callable[..., Any]] = {
    f"aten.{name}.default": function for name, function in _FUNCTIONS.items()
}
