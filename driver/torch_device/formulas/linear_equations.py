# SPDX-License-Identifier: Apache-2.0
"""Linear equations: LU with pivots, Cholesky, triangular systems, determinants, inverses.

Column by column, each step over the whole batch: fp32 matrices of moderate size.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from driver.errors import UnsupportedOp

Tensor = torch.Tensor
LARGEST = 512
"""A larger matrix would need more steps than a program can wait for."""


def checked(op: str, *matrices: Tensor) -> None:
    """UnsupportedOp for matrices of another type than fp32, or too large ones."""
    for matrix in matrices:
        if matrix.dtype is not torch.float32:
            raise UnsupportedOp(op, "dtype", str(matrix.dtype).removeprefix("torch."), "float32")
        if max(matrix.shape[-2:]) > LARGEST:
            raise UnsupportedOp(op, "sizes", tuple(matrix.shape), f"matrices of up to {LARGEST}")


def flat(matrix: Tensor) -> Tensor:
    """[batch, rows, columns], a copy."""
    return matrix.reshape(math.prod(matrix.shape[:-2]), *matrix.shape[-2:]).clone()


def transposed(matrix: Tensor) -> Tensor:
    """Rows and columns exchanged."""
    return matrix.transpose(-2, -1)


def batch_of(*matrices: Tensor) -> tuple[int, ...]:
    """The batch sizes that matrices have together."""
    return tuple(torch.broadcast_shapes(*(x.shape[:-2] for x in matrices)))


# ---------------------------------------------------------------------- triangular systems
def substitute(matrix: Tensor, right: Tensor, upper: bool, unitriangular: bool) -> Tensor:
    """X with matrix·X = right, one row of X after the other."""
    batch = batch_of(matrix, right)
    matrix = matrix.expand(*batch, *matrix.shape[-2:])
    found = right.expand(*batch, *right.shape[-2:]).clone()
    size = matrix.shape[-1]
    for row in reversed(range(size)) if upper else range(size):
        known = slice(row + 1, size) if upper else slice(0, row)
        value = found[..., row : row + 1, :]
        if known.start < known.stop:
            value = value - matrix[..., row : row + 1, known] @ found[..., known, :]
        if not unitriangular:
            value = value / matrix[..., row : row + 1, row : row + 1]
        found[..., row : row + 1, :] = value
    return found


def solve_triangular(
    self: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    """X with self·X = B, or X·self = B."""
    checked("aten.linalg_solve_triangular.default", self, B)
    if left:
        return substitute(self, B, upper, unitriangular)
    return transposed(substitute(transposed(self), transposed(B), not upper, unitriangular))


def triangular_solve(
    self: Tensor,
    A: Tensor,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
) -> tuple[Tensor, Tensor]:
    """The older form: the solution, and a copy of the matrix."""
    checked("aten.triangular_solve.default", self, A)
    matrix = transposed(A) if transpose else A
    found = substitute(matrix, self, upper is not transpose, unitriangular)
    batch = batch_of(A, self)
    return found, A.expand(*batch, *A.shape[-2:]).clone()


# ---------------------------------------------------------------------- LU
def lu_factor(
    A: Tensor, *, pivot: bool = True, check_errors: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """L below the diagonal and U above; pivots from 1; info: the first pivot that is 0, or 0."""
    checked("aten.linalg_lu_factor_ex.default", A)
    if not pivot:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the NPU")
    found = flat(A)
    batch, rows, columns = found.shape
    steps = min(rows, columns)
    pivots = torch.zeros(batch, steps, dtype=torch.int32, device=A.device)
    info = torch.zeros(batch, dtype=torch.int32, device=A.device)
    for k in range(steps):
        best = found[:, k:, k].abs().argmax(1) + k
        pivots[:, k] = (best + 1).to(torch.int32)
        _exchange(found, k, best)
        head = found[:, k, k]
        info = torch.where((info == 0) & (head == 0), k + 1, info)
        below = found[:, k + 1 :, k]
        factor = torch.where(head[:, None] == 0, below, below / head[:, None])
        found[:, k + 1 :, k] = factor
        rest = found[:, k + 1 :, k + 1 :]
        rest -= factor[:, :, None] * found[:, k, None, k + 1 :]
    info = info.to(torch.int32)
    if check_errors:
        raise_for(
            info,
            "torch.linalg.lu_factor: U[{at},{at}] is zero and using it on lu_solve "
            "would result in a division by zero.",
        )
    lead = A.shape[:-2]
    return found.reshape(A.shape), pivots.reshape(*lead, steps), info.reshape(lead)


def _exchange(matrix: Tensor, row: int, other: Tensor) -> None:
    """Row `row` of each matrix and row other[batch], exchanged."""
    places = other[:, None, None].expand(-1, 1, matrix.shape[2])
    upper, lower = matrix[:, row : row + 1].clone(), matrix.gather(1, places)
    matrix.scatter_(1, places, upper)
    matrix[:, row : row + 1] = lower


def raise_for(info: Tensor, text: str) -> None:
    """torch.linalg.LinAlgError for the first matrix whose info is not 0."""
    for number in info.reshape(-1).tolist():
        if number:
            raise torch.linalg.LinAlgError(text.format(at=number))  # type: ignore[attr-defined]


def permutation(pivots: Tensor, rows: int) -> Tensor:
    """[batch, rows]: which row of the matrix each row of its factors is."""
    flat_pivots = pivots.reshape(math.prod(pivots.shape[:-1]), pivots.shape[-1]).long() - 1
    order = torch.arange(rows, device=pivots.device).expand(flat_pivots.shape[0], rows).clone()
    order = order.unsqueeze(2)
    for k in range(flat_pivots.shape[1]):
        _exchange(order, k, flat_pivots[:, k])
    return order.squeeze(2)


def lu_unpack(
    LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> tuple[Tensor, Tensor, Tensor]:
    """P, L and U as matrices; empty ones for what is not wanted."""
    rows, columns = LU_data.shape[-2:]
    size = min(rows, columns)
    P, L, U = (LU_data.new_empty(0) for _ in range(3))
    if unpack_data:
        L = LU_data[..., :, :size].tril(-1) + torch.eye(rows, size, device=LU_data.device)
        U = LU_data[..., :size, :].triu()
    if unpack_pivots:
        order = permutation(LU_pivots, rows).reshape(*LU_pivots.shape[:-1], rows)
        own = torch.arange(rows, device=order.device)
        P = (order[..., None, :] == own[:, None]).to(LU_data.dtype)
    return P, L, U


def lu(A: Tensor, *, pivot: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """P·L·U = A"""
    factors, pivots, _ = lu_factor(A, pivot=pivot)
    return lu_unpack(factors, pivots)


def lu_solve(
    LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False
) -> Tensor:
    """X with A·X = B, Aᵀ·X = B, or X on the left."""
    checked("aten.linalg_lu_solve.default", LU, B)
    if not left:
        return transposed(lu_solve(LU, pivots, transposed(B), adjoint=not adjoint))
    rows = LU.shape[-1]
    batch = batch_of(LU, B)
    order = permutation(pivots, rows).reshape(*pivots.shape[:-1], rows)
    order = order.unsqueeze(-1).expand(*batch, rows, B.shape[-1])
    B = B.expand(*batch, *B.shape[-2:])
    if adjoint:
        found = substitute(transposed(LU), B, False, False)
        found = substitute(transposed(LU), found, True, True)
        return torch.zeros_like(found).scatter(-2, order, found)
    found = substitute(LU, B.gather(-2, order), False, True)
    return substitute(LU, found, True, False)


# ---------------------------------------------------------------------- what LU gives
def _factored(A: Tensor) -> tuple[Tensor, Tensor]:
    """Factors and pivots of a contiguous matrix's transpose: torch's gradients rely on that."""
    return lu_factor(transposed(A) if A.is_contiguous() else A)[:2]


def _sign_of_permutation(pivots: Tensor) -> Tensor:
    own = torch.arange(1, pivots.shape[-1] + 1, device=pivots.device)
    swaps = (pivots != own).sum(-1)
    return 1.0 - 2.0 * (swaps % 2).float()


def det(A: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The determinant, and the factors for the gradient."""
    factors, pivots = _factored(A)
    diagonal = factors.diagonal(0, -2, -1)
    return diagonal.prod(-1) * _sign_of_permutation(pivots), factors, pivots


def slogdet(A: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Sign and logarithm of the determinant, and the factors."""
    factors, pivots = _factored(A)
    diagonal = factors.diagonal(0, -2, -1)
    sign = diagonal.sign().prod(-1) * _sign_of_permutation(pivots)
    return sign, diagonal.abs().log().sum(-1), factors, pivots


def solve(
    A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """A·X = B, or X·A = B; B may be a vector, or a batch of vectors."""
    factors, pivots, info = lu_factor(A)
    if check_errors:
        raise_for(
            info, "torch.linalg.solve: The solver failed because the input matrix is singular."
        )
    vector = B.dim() == 1 or (A.dim() - 1 == B.dim() and B.shape == A.shape[:-1])
    right = B.unsqueeze(-1) if vector else B
    found = lu_solve(factors, pivots, right, left=left)
    return found.squeeze(-1) if vector else found, factors, pivots, info


def inverse(A: Tensor, *, check_errors: bool = False) -> tuple[Tensor, Tensor]:
    """A⁻¹, and the first pivot that is 0."""
    factors, pivots, info = lu_factor(A)
    if check_errors:
        raise_for(
            info,
            "torch.linalg.inv: The diagonal element {at} is zero, the inversion could "
            "not be completed because the input matrix is singular.",
        )
    unit = torch.eye(A.shape[-1], device=A.device).expand(A.shape)
    return lu_solve(factors, pivots, unit), info


# ---------------------------------------------------------------------- Cholesky
def cholesky_ex(
    self: Tensor, *, upper: bool = False, check_errors: bool = False
) -> tuple[Tensor, Tensor]:
    """L with L·Lᵀ = self, or its transpose; info: the order of the first bad minor."""
    checked("aten.linalg_cholesky_ex.default", self)
    given = flat(self.triu() if upper else self.tril())
    given = transposed(given).contiguous() if upper else given
    found = torch.zeros_like(given)
    info = torch.zeros(given.shape[0], dtype=torch.int32, device=self.device)
    for k in range(given.shape[-1]):
        done = found[:, k:, :k]
        column = given[:, k:, k]
        if k:
            column = column - (done @ found[:, k, :k, None]).squeeze(-1)
        info = torch.where((info == 0) & ~(column[:, 0] > 0), k + 1, info)
        found[:, k:, k] = column / column[:, :1].sqrt()
    info = info.to(torch.int32)
    if check_errors:
        raise_for(
            info,
            "linalg.cholesky: The factorization could not be completed because the "
            "input is not positive-definite (the leading minor of order {at} is not "
            "positive-definite).",
        )
    found = transposed(found) if upper else found
    return found.reshape(self.shape), info.reshape(self.shape[:-2])


def cholesky(self: Tensor, upper: bool = False) -> Tensor:
    """The factor alone; an error for a matrix that has none."""
    return cholesky_ex(self, upper=upper, check_errors=True)[0]


def cholesky_solve(self: Tensor, A: Tensor, upper: bool) -> Tensor:
    """X with A's product·X = self."""
    checked("aten._cholesky_solve_helper.default", self, A)
    lower = transposed(A) if upper else A
    return substitute(transposed(lower), substitute(lower, self, False, False), True, False)


def cholesky_inverse(self: Tensor, upper: bool = False) -> Tensor:
    """The inverse of the factor's product."""
    unit = torch.eye(self.shape[-1], device=self.device).expand(self.shape)
    return cholesky_solve(unit, self, upper)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "linalg_solve_triangular": solve_triangular,
    "triangular_solve": triangular_solve,
    "linalg_lu_factor_ex": lu_factor,
    "lu_unpack": lu_unpack,
    "linalg_lu": lu,
    "linalg_lu_solve": lu_solve,
    "_linalg_det": det,
    "_linalg_slogdet": slogdet,
    "_linalg_solve_ex": solve,
    "linalg_inv_ex": inverse,
    "linalg_cholesky_ex": cholesky_ex,
    "cholesky": cholesky,
    "_cholesky_solve_helper": cholesky_solve,
    "cholesky_inverse": cholesky_inverse,
}
DEFINITIONS: dict[str, Callable[..., Any]] = {
    f"aten.{name}.default": function for name, function in _FUNCTIONS.items()
}
