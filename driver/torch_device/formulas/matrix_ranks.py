# SPDX-License-Identifier: Apache-2.0
"""What singular values above a tolerance tell: the rank of a matrix, and its pseudoinverse.

torch has the tolerances in float64, in which the NPU does not compute: they become fp32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from driver.torch_device.formulas.linear_equations import checked, transposed

Tensor = torch.Tensor
Tolerance = Tensor | float | None
"""Of a matrix, or one for each of a batch."""


def _in_fp32(tolerance: Tolerance, like: Tensor) -> Tensor:
    """[…, 1], on the device of the matrix."""
    if isinstance(tolerance, Tensor):
        host = tolerance.cpu() if tolerance.dtype is torch.float64 else tolerance
        return host.float().to(like.device).unsqueeze(-1)
    return torch.tensor([float(tolerance or 0)], device=like.device)


def _least(A: Tensor, values: Tensor, atol: Tolerance, rtol: Tolerance) -> Tensor:
    """The tolerance: values above it count. Without any, what roundings leave."""
    absolute = _in_fp32(atol, A)
    if rtol is None:
        usual = torch.finfo(A.dtype).eps * max(A.shape[-2:])
        relative = torch.where(absolute > 0, 0.0, usual)
    else:
        relative = _in_fp32(rtol, A)
    return torch.maximum(absolute, relative * values.amax(-1, keepdim=True))


def matrix_rank(
    self: Tensor, *, atol: Tolerance = None, rtol: Tolerance = None, hermitian: bool = False
) -> Tensor:
    """How many singular values are above the tolerance."""
    checked("aten.linalg_matrix_rank.atol_rtol_tensor", self)
    if not self.numel():
        return torch.zeros(self.shape[:-2], dtype=torch.long, device=self.device)
    linalg = torch.linalg
    values: Tensor = linalg.eigvalsh(self).abs() if hermitian else linalg.svdvals(self)
    return (values > _least(self, values, atol, rtol)).sum(-1)


def pinv(
    self: Tensor, *, atol: Tolerance = None, rtol: Tolerance = None, hermitian: bool = False
) -> Tensor:
    """The pseudoinverse: singular values up to the tolerance count as 0."""
    checked("aten.linalg_pinv.atol_rtol_tensor", self)
    if not self.numel():
        return self.new_empty((*self.shape[:-2], self.shape[-1], self.shape[-2]))
    if hermitian:
        values, right = torch.linalg.eigh(self)
        left, size = right, values.abs()
    else:
        left, values, across = torch.linalg.svd(self, full_matrices=False)
        right, size = transposed(across), values
    inverse: Tensor = torch.where(size > _least(self, size, atol, rtol), 1 / values, 0.0)
    found: Tensor = (right * inverse.unsqueeze(-2)) @ transposed(left)
    return found


def _rank_by_tolerance(self: Tensor, tol: Tolerance, hermitian: bool = False) -> Tensor:
    """By an absolute tolerance."""
    return matrix_rank(self, atol=tol, rtol=0.0, hermitian=hermitian)


DEFINITIONS: dict[str, Callable[..., Any]] = {
    "aten.linalg_pinv.atol_rtol_tensor": pinv,
    "aten.linalg_matrix_rank.atol_rtol_tensor": matrix_rank,
    "aten.linalg_matrix_rank.atol_rtol_float": matrix_rank,
    "aten.linalg_matrix_rank.default": _rank_by_tolerance,
    "aten.linalg_matrix_rank.tol_tensor": _rank_by_tolerance,
}
