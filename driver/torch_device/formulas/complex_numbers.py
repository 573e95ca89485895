# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of complex numbers, as that of their real and imaginary parts in fp32.

Used where a row refuses the type. complex128 stays refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch

from driver.torch_device.formulas import integers
from driver.torch_device.formulas.unsupported_dtypes import promoted

Tensor = torch.Tensor
Operand = Tensor | complex
Parts = tuple[Tensor, Tensor]
_PARTS = {torch.complex64: torch.float32, torch.complex32: torch.float16}


def parts(x: Tensor) -> Parts:
    """Real and imaginary part in fp32; an imaginary part of zeros for real numbers."""
    if not x.is_complex():
        return x.float(), torch.zeros_like(x, dtype=torch.float32)
    pairs = torch.view_as_real(x.resolve_conj().resolve_neg()).float()
    return pairs[..., 0], pairs[..., 1]


def joined(real: Tensor, imag: Tensor, dtype: torch.dtype = torch.complex64) -> Tensor:
    """The complex numbers of two parts."""
    pairs = torch.stack([real, imag], -1)
    return torch.view_as_complex(pairs.to(_PARTS[dtype]))


def _type_of(*values: Operand) -> torch.dtype | None:
    """The complex type of a result; None when it is not one that has parts of ours."""
    found = promoted([x for x in values if isinstance(x, Tensor)])
    if any(isinstance(x, complex) for x in values) and not found.is_complex:
        found = torch.complex64
    return found if found in _PARTS else None


def _operands(*values: Operand) -> list[Parts]:
    device = next(x.device for x in values if isinstance(x, Tensor))

    def one(value: Operand) -> Parts:
        if isinstance(value, Tensor):
            return parts(value if value.device == device else value.to(device))
        number = complex(value)
        pair = [torch.full((), x, device=device) for x in (number.real, number.imag)]
        return pair[0], pair[1]

    return [one(value) for value in values]


def _refused() -> Tensor:
    return cast("Tensor", NotImplemented)


def _product(a: Parts, b: Parts) -> Parts:
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


def mul(self: Operand, other: Operand) -> Tensor:
    """self·other"""
    dtype = _type_of(self, other)
    return joined(*_product(*_operands(self, other)), dtype) if dtype else _refused()


def add(self: Operand, other: Operand, alpha: complex = 1) -> Tensor:
    """self + alpha·other"""
    dtype = _type_of(self, other)
    if dtype is None:
        return _refused()
    a, b = _operands(self, other)
    if alpha != 1:
        factor = complex(alpha)
        b = factor.real * b[0] - factor.imag * b[1], factor.real * b[1] + factor.imag * b[0]
    return joined(a[0] + b[0], a[1] + b[1], dtype)


def sub(self: Operand, other: Operand, alpha: complex = 1) -> Tensor:
    """self − alpha·other"""
    return add(self, other, -alpha)


def rsub(self: Operand, other: Operand, alpha: complex = 1) -> Tensor:
    """other − alpha·self"""
    return add(other, self, -alpha)


def div(self: Operand, other: Operand) -> Tensor:
    """self ÷ other, the divisor scaled by its larger part against overflow"""
    dtype = _type_of(self, other)
    if dtype is None:
        return _refused()
    a, b = _operands(self, other)
    scale = torch.maximum(b[0].abs(), b[1].abs())
    # Each part divided by 0, where both are: not 0 ÷ 0.
    real, imag = (
        torch.where(scale == 0, 1.0, b[0] / scale),
        torch.where(scale == 0, b[1], b[1] / scale),
    )
    bottom = scale * (real * real + imag * imag)
    top = _product(a, (real, -imag))
    return joined(top[0] / bottom, top[1] / bottom, dtype)


def reciprocal(self: Tensor) -> Tensor:
    """1 ÷ self"""
    return div(1, self)


def neg(self: Tensor) -> Tensor:
    """−self"""
    dtype = _type_of(self)
    if dtype is None:
        return _refused()
    real, imag = parts(self)
    return joined(-real, -imag, dtype)


def conj_physical(self: Tensor) -> Tensor:
    """The conjugate, in memory of its own"""
    if not self.is_complex():
        return self.clone()
    dtype = _type_of(self)
    if dtype is None:
        return _refused()
    real, imag = parts(self)
    return joined(real, -imag, dtype)


def absolute(self: Tensor) -> Tensor:
    """√(real² + imag²)"""
    dtype = _type_of(self)
    return torch.hypot(*parts(self)).to(_PARTS[dtype]) if dtype else _refused()


def angle(self: Tensor) -> Tensor:
    """The angle of a complex number"""
    dtype = _type_of(self)
    if dtype is None:
        return _refused()
    real, imag = parts(self)
    return torch.atan2(imag, real).to(_PARTS[dtype])


def sgn(self: Tensor) -> Tensor:
    """self ÷ |self|, and 0 for 0"""
    dtype = _type_of(self)
    if dtype is None:
        return _refused()
    real, imag = parts(self)
    size = torch.hypot(real, imag)
    factor = torch.where(size == 0, 0.0, 1 / size)
    return joined(real * factor, imag * factor, dtype)


def exp(self: Tensor) -> Tensor:
    """e^real·(cos imag, sin imag)"""
    dtype = _type_of(self)
    if dtype is None:
        return _refused()
    real, imag = parts(self)
    size = real.exp()
    return joined(size * imag.cos(), size * imag.sin(), dtype)


def total(
    self: Tensor,
    dim: Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """The sum over some dimensions, or all"""
    kept = _type_of(self)
    if kept is None or dtype not in (None, kept):
        return _refused()
    dims = list(dim or range(self.dim()))
    real, imag = (x.sum(dims, keepdim) if dims else x for x in parts(self))
    return joined(real, imag, kept)


def equal_elements(self: Tensor, other: Operand) -> Tensor:
    """Where both parts are equal"""
    if _type_of(self, other) is None:
        return _refused()
    a, b = _operands(self, other)
    return (a[0] == b[0]) & (a[1] == b[1])


def unequal_elements(self: Tensor, other: Operand) -> Tensor:
    """Where a part differs"""
    found = equal_elements(self, other)
    return found if found is NotImplemented else found.logical_not()


def product_of_matrices(self: Tensor, other: Tensor) -> Tensor:
    """The matrix product, by three or four real ones"""
    dtype = _type_of(self, other)
    if dtype is None:
        return integers.matrix_product(self, other)
    (a, b), (c, d) = parts(self), parts(other)
    return joined(a @ c - b @ d, a @ d + b @ c, dtype)


def vector_norm(
    self: Tensor,
    ord: float = 2,
    dim: Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """Of the absolute values"""
    if not self.is_complex():
        return _refused()
    real = None if dtype is None else torch.empty(0, dtype=dtype, device="meta").abs().dtype
    found: Tensor = torch.linalg.vector_norm(self.abs(), ord, dim, keepdim, dtype=real)
    return found


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "linalg_vector_norm.default": vector_norm,
    "mul.Tensor": mul,
    "mul.Scalar": mul,
    "add.Tensor": add,
    "add.Scalar": add,
    "sub.Tensor": sub,
    "sub.Scalar": sub,
    "rsub.Tensor": rsub,
    "rsub.Scalar": rsub,
    "div.Tensor": div,
    "div.Scalar": div,
    "reciprocal.default": reciprocal,
    "neg.default": neg,
    "conj_physical.default": conj_physical,
    "_conj_physical.default": conj_physical,
    "abs.default": absolute,
    "exp.default": exp,
    "sum.default": total,
    "sum.dim_IntList": total,
    "eq.Tensor": equal_elements,
    "eq.Scalar": equal_elements,
    "ne.Tensor": unequal_elements,
    "ne.Scalar": unequal_elements,
    "mm.default": product_of_matrices,
    "bmm.default": product_of_matrices,
}
DEFINITIONS: dict[str, Callable[..., Any]] = {
    f"aten.{name}": function for name, function in _FUNCTIONS.items()
}
