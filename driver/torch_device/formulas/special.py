# SPDX-License-Identifier: Apache-2.0
"""Error functions, and functions of the bits of a number."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from driver.errors import UnsupportedOp
from driver.torch_device.formulas import coefficients, complex_numbers
from driver.torch_device.formulas.coefficients import FittedPolynomial

Tensor = torch.Tensor


def floating(x: Tensor) -> Tensor:
    """In fp32, in which every formula is computed."""
    return x.float()


def rounded(found: Tensor, *given: Tensor) -> Tensor:
    """A result in the type in which torch returns it for these operands."""
    dtypes = [x.dtype if x.is_floating_point() else torch.get_default_dtype() for x in given]
    for dtype in dtypes[1:]:
        dtypes[0] = torch.promote_types(dtypes[0], dtype)
    return found.to(dtypes[0])


def together(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Both, broadcast to the same sizes."""
    one, other = torch.broadcast_tensors(x, y)
    return one, other


def evaluate(polynomial: FittedPolynomial, x: Tensor) -> Tensor:
    """The polynomial at x, which is limited to its interval."""
    low, high, (first, *rest) = polynomial
    u = (x.clamp(low, high) - (low + high) / 2) * (2 / (high - low))
    found = torch.full_like(u, first)
    for coefficient in rest:
        found = found * u + coefficient
    return found


# ---------------------------------------------------------------------- error functions
def scaled_erfc(x: Tensor) -> Tensor:
    """e^(x²)·erfc(x) for x ≥ 0 in fp32: t·e^(P(t)) with t = 2 ÷ (2 + x)."""
    t = 2 / (x + 2)
    return t * evaluate(coefficients.ERFCX, t).exp()


def erfc(self: Tensor) -> Tensor:
    """1 − erf(x), with its relative precision where it is small."""
    x = floating(self)
    size = x.abs()
    # The square in two parts: the upper one has no rounding error.
    upper = (size.view(torch.int32) & ~0xFFF).view(torch.float32)
    tail = (-upper * upper).exp() * (-(size - upper) * (size + upper)).exp() * scaled_erfc(size)
    tail = torch.where(size > _ERFC_END, 0.0, tail)
    return rounded(torch.where(x < 0, 2 - tail, torch.where(size < 0.5, 1 - x.erf(), tail)), self)


_ERFC_END = 10.2
"""From here on erfc rounds to 0."""


def special_erfcx(self: Tensor) -> Tensor:
    """e^(x²)·erfc(x)"""
    x = floating(self)
    tail = scaled_erfc(x.abs())
    return rounded(torch.where(x < 0, 2 * (x * x).exp() - tail, tail), self)


def _inverse_error(x: Tensor, w: Tensor) -> Tensor:
    """erf⁻¹(x) for w = −log(1 − x²): x·P(w), or x·P(√w) from 5 on."""
    near = evaluate(coefficients.ERFINV, w)
    return x * torch.where(w < 5, near, evaluate(coefficients.ERFINV_TAIL, w.sqrt()))


def erfinv(self: Tensor) -> Tensor:
    """The number whose error function this is; NaN beyond ±1."""
    x = floating(self)
    found = _inverse_error(x, -((1 - x) * (1 + x)).log())
    ends = torch.where(x.abs() > 1, math.nan, torch.where(x < 0, -math.inf, math.inf))
    return rounded(torch.where(x.abs() < 1, found, torch.where(x.isnan(), x, ends)), self)


def special_ndtri(self: Tensor) -> Tensor:
    """The number below which a normal number lies with this probability."""
    p = floating(self)
    found = _inverse_error(2 * p - 1, -(4 * p * (1 - p)).log()) * math.sqrt(2)
    ends = torch.where(p == 0, -math.inf, torch.where(p == 1, math.inf, math.nan))
    return rounded(torch.where((p > 0) & (p < 1), found, ends), self)


# ---------------------------------------------------------------------- bits of a number
_SIGN, _EXPONENT, _BIAS = -(1 << 31), 0xFF, 127


def _words(x: Tensor, op: str) -> Tensor:
    if x.dtype is not torch.float32:
        raise UnsupportedOp(op, "dtype", str(x.dtype).removeprefix("torch."), "float32")
    return x.contiguous().view(torch.int32)


def nextafter(self: Tensor, other: Tensor) -> Tensor:
    """The next fp32 number in the direction of `other`."""
    x, target = together(self, other)
    words = _words(x, "aten.nextafter.default")
    outward = (target > x) == (x > 0)
    moved = torch.where(outward, words + 1, words - 1)
    least = torch.where(target > 0, 1, _SIGN + 1).to(torch.int32)
    moved = torch.where((words & ~_SIGN) == 0, least, moved)
    found = torch.where(x == target, _words(target, "aten.nextafter.default"), moved)
    return torch.where(x.isnan() | target.isnan(), x + target, found.view(torch.float32))


def frexp(self: Tensor) -> tuple[Tensor, Tensor]:
    """Mantissa in [½, 1) and exponent; mantissa·2^exponent is the number."""
    x = floating(self)
    small = x.abs() < 2.0**-126
    words = _words(torch.where(small, x * 2.0**24, x), "aten.frexp.Tensor")
    exponent = ((words >> 23) & _EXPONENT) - (_BIAS - 1)
    mantissa = ((words & ~(_EXPONENT << 23)) | ((_BIAS - 1) << 23)).view(torch.float32)
    whole = (x == 0) | ~x.isfinite()
    exponent = torch.where(whole, 0, torch.where(small, exponent - 24, exponent))
    return rounded(torch.where(whole, x, mantissa), self), exponent.to(torch.int32)


def ldexp(self: Tensor, other: Tensor) -> Tensor:
    """x·2^n, also where 2^n alone has no number; rounded once."""
    if other.is_floating_point() or self.is_complex():
        return self * torch.pow(2.0, other)
    mantissa, exponent = frexp(floating(self))
    power = (other.long().clamp(-_FAR, _FAR) + exponent).clamp(-2 * _STEP, 2 * _STEP)
    first = power >> 1  # the first product is exact: the mantissa is a normal number
    found = mantissa * _power_of_two(first) * _power_of_two(power - first)
    return rounded(found, self)


_FAR = 1024
"""An exponent beyond it makes 0 or infinity of every number."""
_STEP = 125


def _power_of_two(exponent: Tensor) -> Tensor:
    return ((exponent.int() + _BIAS) << 23).view(torch.float32)


# ---------------------------------------------------------------------- sides and angles
def hypot(self: Tensor, other: Tensor) -> Tensor:
    """√(a² + b²) without overflow on the way."""
    a, b = floating(self).abs(), floating(other).abs()
    long, short = torch.maximum(a, b), torch.minimum(a, b)
    ratio = short / long
    found = torch.where(long == 0, 0.0, long * (1 + ratio * ratio).sqrt())
    found = torch.where(a.isinf() | b.isinf(), math.inf, found)
    return rounded(found, self, other)


def angle(self: Tensor) -> Tensor:
    """0 for positive numbers, π for negative ones."""
    if self.is_complex():
        return complex_numbers.angle(self)
    x = floating(self)
    return rounded(torch.where(x.isnan(), x, torch.where(x < 0, math.pi, 0.0)), self)


def sgn(self: Tensor) -> Tensor:
    """−1, 0 or 1; of a complex number that of size 1 in its direction"""
    return complex_numbers.sgn(self) if self.is_complex() else self.sign()


def zeros(size: Sequence[int], **options: Any) -> Tensor:
    """Zeros; torch marks those of some gradients, so as not to store them."""
    return torch.zeros(list(size), **options)


DEFINITIONS: dict[str, Callable[..., Any]] = {
    "aten.erfc.default": erfc,
    "aten.special_erfcx.default": special_erfcx,
    "aten.erfinv.default": erfinv,
    "aten.special_ndtri.default": special_ndtri,
    "aten.nextafter.default": nextafter,
    "aten.frexp.Tensor": frexp,
    "aten.ldexp.Tensor": ldexp,
    "aten.hypot.default": hypot,
    "aten.angle.default": angle,
    "aten.sgn.default": sgn,
    "aten._efficientzerotensor.default": zeros,
}
