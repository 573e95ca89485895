# SPDX-License-Identifier: Apache-2.0
"""The gamma function's relatives, in fp32: shifted to where their asymptotic series hold."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from driver.errors import UnsupportedOp
from driver.torch_device.formulas import coefficients
from driver.torch_device.formulas.polynomials import largest
from driver.torch_device.formulas.special import evaluate, floating, rounded, together

Tensor = torch.Tensor

_SHIFT = 7
"""From here on Stirling's series with four terms has full precision."""
_SMALL_ANGLE = 2.0**-20
"""Below, sin πx is πx."""
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680)
_DIGAMMA = (1 / 12, -1 / 120, 1 / 252, -1 / 240)
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66)
_ZETA_START = 9
_MOST_TERMS = 1024


def _odd_series(inverse: Tensor, terms: tuple[float, ...]) -> Tensor:
    """Σ terms[k]·inverse^(2k + 1)."""
    square = inverse * inverse
    found = torch.full_like(square, terms[-1])
    for term in reversed(terms[:-1]):
        found = found * square + term
    return found * inverse


def _log_gamma(x: Tensor) -> Tensor:
    """For x ≥ ½: by Stirling's series, or from x less whole numbers, which adds positive terms."""
    y = x.clamp(min=_SHIFT)
    far = (y - 0.5) * y.log() - y + math.log(2 * math.pi) / 2 + _odd_series(1 / y, _STIRLING)
    limit = coefficients.LGAMMA_NEAR.high
    y, product = x, torch.ones_like(x)
    for _ in range(math.ceil(_SHIFT - limit)):
        above = y > limit
        y = torch.where(above, y - 1, y)
        product = torch.where(above, product * y, product)
    near = (y - 1) * (y - 2) * evaluate(coefficients.LGAMMA_NEAR, y) + product.log()
    return torch.where(x.isinf(), x, torch.where(x >= _SHIFT, far, near))


def lgamma(self: Tensor) -> Tensor:
    """log |Γ(x)|; below ½ by the reflection Γ(x)·Γ(1 − x) = π ÷ sin πx."""
    x = floating(self)
    mirrored = x < 0.5
    found = _log_gamma(torch.where(mirrored, 1 - x, x))
    fraction = (x - x.round()).abs()
    # The product of pi and a subnormal number has few bits.
    small = fraction.log() + math.log(math.pi)
    sine = torch.where(fraction < _SMALL_ANGLE, small, (fraction * math.pi).sin().log())
    found = torch.where(mirrored, math.log(math.pi) - sine - found, found)
    pole = mirrored & (fraction == 0)
    return rounded(torch.where(x.isinf() | pole, math.inf, found), self)


def _digamma(x: Tensor) -> Tensor:
    """For x ≥ ½."""
    below = 1 / x
    for step in range(1, _SHIFT):
        below = below + 1 / (x + step)
    far = x >= _SHIFT
    y = torch.where(far, x, x + _SHIFT)
    inverse = 1 / y
    found = y.log() - inverse * 0.5 - inverse * _odd_series(inverse, _DIGAMMA)
    return torch.where(far, found, found - below)


def digamma(self: Tensor) -> Tensor:
    """The derivative of log Γ(x); NaN at negative whole numbers, ∓∞ at ±0."""
    x = floating(self)
    mirrored = x < 0.5
    found = _digamma(torch.where(mirrored, 1 - x, x))
    fraction = x - x.round()
    found = torch.where(mirrored, found - math.pi / (fraction * math.pi).tan(), found)
    found = torch.where((x < 0) & (fraction == 0), math.nan, found)
    zero = torch.where(x.signbit(), math.inf, -math.inf)
    found = torch.where(x == 0, zero, found)
    return rounded(torch.where(x == -math.inf, math.nan, found), self)


def _zeta(s: Tensor, q: Tensor) -> Tensor:
    """Σ (q + k)^(−s), the tail from q + k > 9 on by Euler and Maclaurin."""
    steps = -q.clamp(max=0).floor()
    count = _ZETA_START + largest(steps, _MOST_TERMS, "aten.special_zeta.default")
    found = torch.zeros_like(q)
    for step in range(count):
        found = found + (q + step) ** -s
    y = q + count
    power = y**-s
    found = found + y ** (1 - s) / (s - 1) + power * 0.5
    factor, scale = s, 1.0
    power = power / y
    for at, bernoulli in enumerate(_BERNOULLI, 1):
        scale /= (2 * at) * (2 * at - 1)
        found = found + factor * power * (bernoulli * scale)
        factor = factor * (s + (2 * at - 1)) * (s + 2 * at)
        power = power / (y * y)
    return found


def special_zeta(self: Tensor | float, other: Tensor | float) -> Tensor:
    """Hurwitz's zeta function: ∞ at its poles, NaN where it is not defined."""
    given = [x for x in (self, other) if isinstance(x, Tensor)]
    s, q = (
        floating(x)
        if isinstance(x, Tensor)
        else torch.scalar_tensor(x, dtype=torch.float32, device=given[0].device)
        for x in (self, other)
    )
    s, q = together(s, q)
    regular = (s > 1) & ((q > 0) | ((q < 0) & (q != q.floor()) & (s == s.floor())))
    found = _zeta(torch.where(regular, s, 2.0), torch.where(regular, q, 1.0))
    found = torch.where(q.isinf(), math.nan, found)
    pole = (s == 1) | ((s > 1) & (q <= 0) & (q == q.floor()))
    return rounded(torch.where(regular, found, torch.where(pole, math.inf, math.nan)), *given)


def polygamma(n: int, self: Tensor) -> Tensor:
    """The n-th derivative of digamma: (−1)^(n + 1)·n!·ζ(n + 1, x)."""
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    if n == 0:
        return digamma(self)
    order = torch.full_like(floating(self), n + 1)
    sign = 1 if n % 2 else -1
    factorial = float(math.factorial(n)) if n <= _LAST_FACTORIAL else math.inf
    found = special_zeta(order, floating(self)) * (sign * factorial)
    if n == 1:  # ζ(2, ∞) is NaN on the CPU
        found = torch.where(self == math.inf, 0.0, found)
    return rounded(found, self)


_LAST_FACTORIAL = 170
"""The largest number whose factorial is a float64."""


# ---------------------------------------------------------------------- incomplete gamma
def _lower(a: Tensor, x: Tensor, prefix: Tensor, wanted: Tensor) -> Tensor:
    """P(a, x) as prefix·(1 ÷ a)·Σ xᵏ ÷ ((a + 1) … (a + k)); converges well for x ≤ a + 1."""
    term = torch.where(wanted, 1 / a, 0.0)
    found = term
    for step in range(1, _MOST_TERMS):
        term = term * x / (a + step)
        found = found + term
        if step % 16 == 0 and bool((term <= found * 1e-8).all()):
            return found * prefix
    raise UnsupportedOp("aten.igamma.default", "self", "large values", "a series that converges")


def _upper(a: Tensor, x: Tensor, prefix: Tensor, wanted: Tensor) -> Tensor:
    """Q(a, x) as prefix times Legendre's continued fraction, by Lentz; for x > a + 1."""
    x, a = torch.where(wanted, x, 3.0), torch.where(wanted, a, 1.0)
    b = x + 1 - a
    c = torch.full_like(b, 1e30)
    d = 1 / b
    found = d
    for step in range(1, _MOST_TERMS):
        product = (a - step) * step
        b = b + 2
        d = 1 / (product * d + b)
        c = b + product / c
        change = c * d
        found = found * change
        if step % 16 == 0 and bool(((change - 1).abs() < 5e-7).all()):
            return found * prefix
    raise UnsupportedOp("aten.igammac.default", "self", "large values", "a fraction that converges")


def _incomplete(upper: bool, self: Tensor, other: Tensor) -> Tensor:
    a, x = together(floating(self), floating(other))
    inside = (a > 0) & (x > 0) & a.isfinite() & x.isfinite()
    small = x <= a + 1
    safe_a, safe_x = torch.where(inside, a, 1.0), torch.where(inside, x, 1.0)
    prefix = (safe_a * safe_x.log() - safe_x - _lgamma_of(safe_a)).exp()
    low = _lower(safe_a, safe_x, prefix, inside & small)
    high = _upper(safe_a, safe_x, prefix, inside & ~small)
    found = torch.where(small, 1 - low if upper else low, high if upper else 1 - high)
    at_zero, at_end = (1.0, 0.0) if upper else (0.0, 1.0)
    edge = torch.where((x == 0) & (a > 0), at_zero, math.nan)
    edge = torch.where((a == 0) & (x > 0), at_end, edge)
    edge = torch.where(x.isinf() & (x > 0) & a.isfinite() & (a >= 0), at_end, edge)
    edge = torch.where(a.isinf() & (a > 0) & x.isfinite() & (x >= 0), at_zero, edge)
    return rounded(torch.where(inside, found, edge), self, other)


def _lgamma_of(a: Tensor) -> Tensor:
    found: Tensor = torch.lgamma(a)
    return found


def igamma(self: Tensor, other: Tensor) -> Tensor:
    """The lower incomplete gamma function, as a share of the whole."""
    return _incomplete(False, self, other)


def igammac(self: Tensor, other: Tensor) -> Tensor:
    """The upper incomplete gamma function, as a share of the whole."""
    return _incomplete(True, self, other)


DEFINITIONS: dict[str, Callable[..., Any]] = {
    "aten.lgamma.default": lgamma,
    "aten.digamma.default": digamma,
    "aten.polygamma.default": polygamma,
    "aten.special_zeta.default": special_zeta,
    "aten.special_zeta.self_scalar": special_zeta,
    "aten.special_zeta.other_scalar": special_zeta,
    "aten.igamma.default": igamma,
    "aten.igammac.default": igammac,
}
