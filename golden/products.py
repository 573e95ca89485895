# SPDX-License-Identifier: Apache-2.0
"""Matrix products as the matrix engine has them: D = A·B (+ C), one type in, one type out.

`product_of` reads an ATen call as one, `reference` has torch compute it, `chain_bits` computes one
element by integers only. Bounds: golden.bounds.matmul. Knows nothing of packets or lowering.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import torch

from driver.isa import MATMUL_DTYPES, DType
from driver.runtime.torch_types import NPU_TYPES, TORCH_TYPES
from golden.formats import Values
from golden.softfloat import chain
from golden.tensors import full_precision, tensor_bits, values_of, without_onednn

Tensor = torch.Tensor

_LINEAR = "aten.linear.default"
_FACTORS: dict[str, tuple[str, str, str | None]] = {
    "aten.mm.default": ("self", "mat2", None),
    "aten._int_mm.default": ("self", "mat2", None),
    "aten.bmm.default": ("self", "mat2", None),
    "aten.addmm.default": ("mat1", "mat2", "self"),
    "aten.baddbmm.default": ("batch1", "batch2", "self"),
    _LINEAR: ("input", "weight", "bias"),
}
"""Op → which of its arguments are A, B and C. A linear layer's B is its weight, transposed."""
_MATRIX = 2
"""Dimensions of a matrix."""
_OPERANDS = {operand for operand, _ in MATMUL_DTYPES}


@dataclass(frozen=True)
class Product:
    """D = A·B (+ C). a [M, K] or [batch, M, K], b likewise; c broadcasts to D.

    `sizes`: D's shape as the op returns it: linear keeps the leading dimensions of its input.
    """

    a: Tensor
    b: Tensor
    c: Tensor | None
    operand: DType
    result: DType
    sizes: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, int, int]:
        """[batch, M, N] of D."""
        batch = self.a.shape[0] if self.a.dim() == 3 else 1
        return batch, self.a.shape[-2], self.b.shape[-1]

    def values(self) -> tuple[Values, Values, Values | None]:
        """Exact values: a [batch, M, K], b [batch, K, N], c [batch, M, N] or None."""
        a, b = (values_of(x if x.dim() == 3 else x[None]) for x in (self.a, self.b))
        c = None if self.c is None else np.broadcast_to(values_of(self.c), self.shape)
        return a, b, c

    def place(self, element: Sequence[int]) -> tuple[int, int, int]:
        """Batch, row and column of an element that is counted as the op returns it."""
        flat = np.ravel_multi_index(tuple(element), self.sizes)
        batch, row, column = np.unravel_index(flat, self.shape)
        return int(batch), int(row), int(column)


def is_product(op: str) -> bool:
    """Whether the op is a matrix product for arguments of some types."""
    return op in _FACTORS


def product_of(
    op: str, arguments: Mapping[str, Any], result: DType | None = None
) -> Product | None:
    """The product that an op is, by its arguments by name; None when it is no such product: another
    op, alpha other than 1, beta other than 0 or 1, or types that the matrix engine has not.

    `result`: by default the type of the operands, and INT32 for int8: the whole sum is kept.
    """
    if op not in _FACTORS:
        return None
    left, right, added = _FACTORS[op]
    a, b, c = arguments[left], arguments[right], arguments[added] if added else None
    operand = NPU_TYPES.get(a.dtype)
    beta = arguments.get("beta", 1)
    if arguments.get("alpha", 1) != 1 or beta not in (0, 1):
        return None
    if operand not in _OPERANDS or b.dtype != a.dtype:
        return None
    lead = tuple(a.shape[:-1])
    if op == _LINEAR:
        if b.dim() != _MATRIX:
            return None
        a, b = a.reshape(prod(lead), b.shape[1]), b.t()
    if result is None:
        result = DType.INT32 if operand is DType.INT8 else operand
    # torch ignores C altogether when beta is 0, NaN included.
    return Product(a, b, c if beta else None, operand, result, (*lead, b.shape[-1]))


def reference(product: Product) -> Tensor:
    """What CPU torch computes, of shape `product.sizes` and the result type.

    Operands and result of one type: torch's own op. fp16 or bf16 to fp32: torch's fp32 product of
    the widened operands. int8: torch has no such op for all shapes (its int8 mm wraps to int8), so
    the exact int64 product, modulo 2^32.
    """
    if product.operand is DType.INT8:
        total = torch.matmul(product.a.long(), product.b.long())
        total = total if product.c is None else total + product.c.long()
        return total.to(torch.int32).reshape(product.sizes)  # keeps the low 32 bits
    dtype = TORCH_TYPES[product.result]
    a, b = product.a.to(dtype), product.b.to(dtype)
    # oneDNN multiplies bf16 in pairs, on CPUs with AVX-512 but no bf16: where there is one term, it
    # adds infinity times zero, NaN.
    kernels = without_onednn() if a.shape[-1] == 1 else nullcontext()
    with full_precision(), kernels, torch.no_grad():
        if product.c is None:
            made = torch.bmm(a, b) if a.dim() == 3 else torch.mm(a, b)
        else:
            added = torch.baddbmm if a.dim() == 3 else torch.addmm
            made = added(product.c.to(dtype), a, b)
    return made.reshape(product.sizes)


def chain_bits(product: Product, place: Sequence[int]) -> int:
    """Bits of element (batch, row, column) of D: the chain of docs/numerics.md on the original
    tensors, by integer arithmetic."""
    batch, row, column = place
    a = product.a if product.a.dim() == 3 else product.a[None]
    b = product.b if product.b.dim() == 3 else product.b[None]
    c = None
    if product.c is not None:
        c = int(tensor_bits(product.c.expand(product.shape)[batch, row, column].reshape(1))[0])
    a_bits = [int(x) for x in tensor_bits(a[batch, row])]
    b_bits = [int(x) for x in tensor_bits(b[batch, :, column])]
    return chain(a_bits, b_bits, c, product.operand, product.result)
