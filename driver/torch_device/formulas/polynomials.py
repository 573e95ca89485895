# SPDX-License-Identifier: Apache-2.0
"""Orthogonal polynomials of a degree per element, by their recurrences.

The loop runs to the largest degree that occurs, which is read from the device.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from driver.errors import UnsupportedOp
from driver.torch_device.formulas.special import together

Tensor = torch.Tensor
Number = bool | int | float
Step = Callable[[Tensor, int, Tensor, Tensor], Tensor]
"""(x, degree n ≥ 2, value of degree n − 1, of degree n − 2) → the value of degree n."""

MOST_DEGREES = 1024
"""More steps than this are refused, rather than run for minutes."""
HERMITE_DEGREES = 128
"""torch's limit in fp32: above it the value is NaN."""


def operands(x: Tensor | Number, n: Tensor | Number) -> tuple[Tensor, Tensor]:
    """Both as tensors of the same floating-point type and device."""
    if not isinstance(x, Tensor):
        assert isinstance(n, Tensor)
        x = torch.scalar_tensor(x, dtype=_floating(n), device=n.device)
    if not isinstance(n, Tensor):
        n = torch.scalar_tensor(n, dtype=_floating(x), device=x.device)
    dtype = torch.promote_types(_floating(x), _floating(n))
    return together(x.to(dtype), n.to(dtype))


def _floating(x: Tensor) -> torch.dtype:
    return x.dtype if x.is_floating_point() else torch.get_default_dtype()


def largest(n: Tensor, limit: int, what: str) -> int:
    """The largest number, read from the device; UnsupportedOp when it is above the limit."""
    top = float(torch.where(n.isnan(), 0, n).max()) if n.numel() else 0.0  # a NaN has no terms
    if top > limit:
        raise UnsupportedOp(what, "n", top, f"at most {limit}")
    return int(top)


def _recurrence(first: Step, step: Step, x: Tensor, degree: Tensor, top: int) -> Tensor:
    """The polynomials of all degrees up to `top`; each element keeps that of its own degree."""
    before = torch.ones_like(x)
    value = first(x, 1, before, before)
    found = torch.where(degree == 0, before, value)
    for n in range(2, top + 1):
        before, value = value, step(x, n, value, before)
        found = torch.where(degree == n, value, found)
    return torch.where(degree < 0, torch.zeros_like(x), found)


def _chebyshev_step(x: Tensor, n: int, value: Tensor, before: Tensor) -> Tensor:
    return 2 * x * value - before


def _laguerre_step(x: Tensor, n: int, value: Tensor, before: Tensor) -> Tensor:
    return ((2 * n - 1 - x) * value - (n - 1) * before) * (1.0 / n)


def _legendre_step(x: Tensor, n: int, value: Tensor, before: Tensor) -> Tensor:
    return ((2 * n - 1) * x * value - (n - 1) * before) * (1.0 / n)


def _hermite_h_step(x: Tensor, n: int, value: Tensor, before: Tensor) -> Tensor:
    return 2 * x * value - 2 * (n - 1) * before


def _hermite_he_step(x: Tensor, n: int, value: Tensor, before: Tensor) -> Tensor:
    return x * value - (n - 1) * before


_CHEBYSHEV_FIRST: dict[str, Step] = {
    "t": lambda x, _, __, ___: x,
    "u": lambda x, _, __, ___: 2 * x,
    "v": lambda x, _, __, ___: 2 * x - 1,
    "w": lambda x, _, __, ___: 2 * x + 1,
}
"""The polynomial of degree 1 of the four kinds."""
_PLAIN: dict[str, tuple[Step, Step]] = {
    "hermite_polynomial_h": (lambda x, _, __, ___: 2 * x, _hermite_h_step),
    "hermite_polynomial_he": (lambda x, _, __, ___: x, _hermite_he_step),
    "laguerre_polynomial_l": (lambda x, _, __, ___: 1 - x, _laguerre_step),
    "legendre_polynomial_p": (lambda x, _, __, ___: x, _legendre_step),
}


def _chebyshev(kind: str, shifted: bool, x: Tensor | Number, n: Tensor | Number) -> Tensor:
    x, n = operands(x, n)
    x = 2 * x - 1 if shifted else x
    degree = n.trunc()
    top = largest(degree, MOST_DEGREES, f"chebyshev_polynomial_{kind}")
    return _recurrence(_CHEBYSHEV_FIRST[kind], _chebyshev_step, x, degree, top)


def _polynomial(name: str, x: Tensor | Number, n: Tensor | Number) -> Tensor:
    x, n = operands(x, n)
    degree = n.trunc()
    limited = name.startswith("hermite")
    counted = degree.clamp(max=HERMITE_DEGREES) if limited else degree
    top = largest(counted, MOST_DEGREES, name)
    found = _recurrence(*_PLAIN[name], x, degree, top)
    return torch.where(degree > HERMITE_DEGREES, math.nan, found) if limited else found


def _named() -> dict[str, Callable[..., Any]]:
    named: dict[str, Callable[..., Any]] = {}
    for kind in _CHEBYSHEV_FIRST:
        named[f"chebyshev_polynomial_{kind}"] = partial(_chebyshev, kind, False)
        named[f"shifted_chebyshev_polynomial_{kind}"] = partial(_chebyshev, kind, True)
    for name in _PLAIN:
        named[name] = partial(_polynomial, name)
    return named


DEFINITIONS: dict[str, Callable[..., Any]] = {
    f"aten.special_{name}.{overload}": function
    for name, function in _named().items()
    for overload in ("default", "x_scalar", "n_scalar")
}
