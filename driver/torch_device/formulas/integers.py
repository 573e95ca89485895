# SPDX-License-Identifier: Apache-2.0
"""Ops of integers whose rows take floating-point numbers only: products, divisors, counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND, elementwise_dtypes

from driver.errors import UnsupportedOp

Tensor = torch.Tensor

_MOST_PRODUCTS = 1 << 24
_BITS = 63


def _are_whole(*operands: Tensor) -> bool:
    return not any(x.is_floating_point() or x.is_complex() for x in operands)


def numbers_in_int64(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of an op, with an integer that int64 does not hold as a float beside floats,
    else wrapped, as torch wraps it."""
    if not any(type(value) is int and value > _INT64_MAX for value in args):
        return args
    tensors = [x for x in args if isinstance(x, Tensor)]
    beside_floats = any(x.is_floating_point() or x.is_complex() for x in tensors)

    def held(value: Any) -> Any:
        if type(value) is not int or value <= _INT64_MAX:
            return value
        return float(value) if beside_floats else value - 2**64

    return tuple(held(value) for value in args)


_INT64_MAX = 2**63 - 1


def in_common_type(*operands: Any) -> list[Any]:
    """Tensors in the type that torch computes in, which may round integers beside 16 bits, on one
    device: a CPU tensor without dimensions counts as a number. Numbers stay as they are."""
    kind = ELEMENTWISE_TYPE_PROMOTION_KIND.DEFAULT
    _, dtype = elementwise_dtypes(*operands, type_promotion_kind=kind)
    tensors = [x for x in operands if isinstance(x, Tensor)]
    device = next(x.device for x in tensors if x.device.type != "cpu")

    def placed(x: Tensor) -> Tensor:
        is_number = x.device.type == "cpu" and not x.dim()
        return x.to(device if is_number else x.device, dtype)

    return [placed(x) if isinstance(x, Tensor) else x for x in operands]


def _refused() -> Tensor:
    return cast("Tensor", NotImplemented)


# ---------------------------------------------------------------------- products
def matrix_product(self: Tensor, mat2: Tensor) -> Tensor:
    """[…, n, k] · […, k, m]: all products, and their sums modulo 2ⁿ."""
    if not _are_whole(self, mat2) or self.dtype is not mat2.dtype:
        return _refused()
    count = self.numel() * mat2.shape[-1]
    if count > _MOST_PRODUCTS:
        raise UnsupportedOp("aten.mm.default", "sizes", count, f"at most {_MOST_PRODUCTS} products")
    found: Tensor = (self.unsqueeze(-1) * mat2.unsqueeze(-3)).sum(-2).to(self.dtype)
    return found


def mv(self: Tensor, vec: Tensor) -> Tensor:
    """A matrix and a vector."""
    found = matrix_product(self, vec.unsqueeze(1))
    return found if found is NotImplemented else found.squeeze(1)


def dot(self: Tensor, tensor: Tensor) -> Tensor:
    """Two vectors."""
    found = matrix_product(self.unsqueeze(0), tensor.unsqueeze(1))
    return found if found is NotImplemented else found.reshape(())


def _added(product: Tensor, c: Tensor, beta: float, alpha: float) -> Tensor:
    if product is NotImplemented:
        return _refused()
    if beta == 0:
        return product * int(alpha)
    return c * int(beta) + product * int(alpha)


def addmm(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta·self + alpha·(a product of matrices)"""
    return _added(matrix_product(mat1, mat2), self, beta, alpha)


def addmv(self: Tensor, mat: Tensor, vec: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta·self + alpha·(a matrix and a vector)"""
    return _added(mv(mat, vec), self, beta, alpha)


def addcmul(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """self + value·tensor1·tensor2"""
    if not _are_whole(self, tensor1, tensor2):
        return _refused()
    a, b, c = in_common_type(self, tensor1, tensor2)
    return cast("Tensor", a + b * c * int(value))


def power(self: Tensor, exponent: Tensor) -> Tensor:
    """self ^ exponent by squares, modulo 2ⁿ; 1 or −1 to a negative power, 0 for other bases."""
    if not _are_whole(self, exponent):
        return _refused()
    dtype = torch.promote_types(self.dtype, exponent.dtype)
    base, left = self.to(torch.int64), exponent.to(torch.int64)
    negative = left < 0
    even = (left & 1) == 0
    inverse = torch.where(base == 1, 1, torch.where(base == -1, torch.where(even, 1, -1), 0))
    found = torch.ones_like(base * left)
    left = torch.where(negative, 0, left)
    top = int(left.max()).bit_length() if left.numel() else 0
    for bit in range(min(top, _BITS)):
        found = torch.where(((left >> bit) & 1) == 1, found * base, found)
        base = base * base
    return torch.where(negative, inverse, found).to(dtype)


def gcd(self: Tensor, other: Tensor) -> Tensor:
    """The greatest common divisor, by Euclid; the steps end when all rests are 0."""
    a, b = torch.broadcast_tensors(self.abs(), other.abs())
    while bool((b != 0).any()):
        rest = torch.where(b == 0, 0, a.fmod(torch.where(b == 0, 1, b)))
        a, b = torch.where(b == 0, a, b), rest
    return cast("Tensor", a.clone())


# ---------------------------------------------------------------------- counts and places
def bincount(self: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each number from 0 on occurs, or the sum of its weights."""
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if weights is not None and weights.shape != self.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    if self.dim() != 1 or (self.numel() and int(self.min()) < 0):
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    size = max(minlength, int(self.max()) + 1 if self.numel() else 0)
    if weights is not None and weights.dtype is not torch.float32:
        raise UnsupportedOp("aten.bincount.default", "weights", weights.dtype, "float32")
    ones = torch.ones_like(self, dtype=torch.int64) if weights is None else weights
    made = torch.zeros(size, dtype=ones.dtype, device=self.device)
    return made.scatter_add(0, self.long(), ones)


def searchsorted(
    sorted_sequence: Tensor,
    self: Tensor,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """Of a sequence that `sorter` puts into order."""
    if sorter is None:
        return _refused()
    ordered = sorted_sequence.gather(-1, sorter)
    return torch.searchsorted(ordered, self, out_int32=out_int32, right=right, side=side)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{"mv.default": mv, "dot.default": dot},
    **{"addmm.default": addmm, "baddbmm.default": addmm, "addmv.default": addmv},
    **{"addcmul.default": addcmul, "pow.Tensor_Tensor": power, "gcd.default": gcd},
    **{"bincount.default": bincount, "searchsorted.Tensor": searchsorted},
}
DEFINITIONS: dict[str, Callable[..., Any]] = {
    f"aten.{name}": function for name, function in _FUNCTIONS.items()
}
