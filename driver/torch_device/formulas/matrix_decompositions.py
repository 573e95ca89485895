# SPDX-License-Identifier: Apache-2.0
"""Orthogonal factors: QR by Householder, singular values and eigenvalues by Jacobi's rotations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from driver.errors import UnsupportedOp
from driver.torch_device.formulas.linear_equations import checked, flat, substitute, transposed

Tensor = torch.Tensor
SWEEPS = 12
"""Rotations of all pairs; they converge quadratically, after 6 to 10 sweeps in fp32."""


# ---------------------------------------------------------------------- Householder
def geqrf(self: Tensor) -> tuple[Tensor, Tensor]:
    """R above the diagonal, the reflectors below it, and their factors tau."""
    checked("aten.geqrf.default", self)
    found = flat(self)
    batch, rows, columns = found.shape
    steps = min(rows, columns)
    tau = torch.zeros(batch, steps, device=self.device)
    for k in range(steps):
        head, below = found[:, k, k].clone(), found[:, k + 1 :, k]
        size = _size(found[:, k:, k], 1)
        small_head, small_below = head / size, below / size[:, None]
        rest = (small_below * small_below).sum(1)
        norm = (small_head * small_head + rest).sqrt() * size
        beta = torch.where(head < 0, norm, -norm)
        flat_column = rest == 0
        beta = torch.where(flat_column, head, beta)
        factor = torch.where(flat_column, 0.0, (beta - head) / beta)
        reflector = torch.where(flat_column[:, None], 0.0, below / (head - beta)[:, None])
        found[:, k, k] = beta
        found[:, k + 1 :, k] = reflector
        tau[:, k] = factor
        _reflect(found[:, k:, k + 1 :], reflector, factor)
    return found.reshape(self.shape), tau.reshape(*self.shape[:-2], steps)


def _size(matrix: Tensor, *dims: int) -> Tensor:
    """What to divide numbers by before they are squared: the largest of `dims` where its square
    might leave fp32, else 1, which rounds nothing."""
    largest = matrix.abs().amax(dims)
    squarable = (largest > _SQUARABLE[0]) & (largest < _SQUARABLE[1])
    return torch.where(squarable | (largest == 0) | ~largest.isfinite(), 1.0, largest)


_SQUARABLE = 2.0**-40, 2.0**40
"""Sizes of numbers whose squares, and sums of them, are numbers with all bits."""


def _reflect(rows: Tensor, reflector: Tensor, factor: Tensor) -> None:
    """rows − factor·v·(vᵀ·rows) for v = (1, reflector), in place."""
    if not rows.shape[2]:
        return
    ones = torch.ones_like(factor)[:, None]
    v = torch.cat([ones, reflector], 1)
    share = factor[:, None] * (v[:, :, None] * rows).sum(1)
    rows -= v[:, :, None] * share[:, None, :]


def _apply(reflectors: Tensor, tau: Tensor, other: Tensor, transpose: bool) -> Tensor:
    """Q·other or Qᵀ·other for flat batches."""
    found = other.clone()
    steps = range(tau.shape[1])
    for k in steps if transpose else reversed(steps):
        _reflect(found[:, k:], reflectors[:, k + 1 :, k], tau[:, k])
    return found


def householder_product(input: Tensor, tau: Tensor) -> Tensor:
    """The first columns of the product of the reflectors."""
    checked("aten.linalg_householder_product.default", input)
    reflectors = flat(input)
    unit = torch.eye(*input.shape[-2:], device=input.device).expand(reflectors.shape)
    found = _apply(reflectors, tau.reshape(reflectors.shape[0], tau.shape[-1]), unit, False)
    return found.reshape(input.shape)


def ormqr(
    input: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False
) -> Tensor:
    """Q·other, Qᵀ·other, other·Q or other·Qᵀ."""
    checked("aten.ormqr.default", input, other)
    if not left:
        return transposed(ormqr(input, tau, transposed(other), True, not transpose))
    reflectors = flat(input)
    factors = tau.reshape(reflectors.shape[0], tau.shape[-1])
    return _apply(reflectors, factors, flat(other), transpose).reshape(other.shape)


def qr(A: Tensor, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    """Q·R = A; mode reduced, complete, or r for R alone."""
    if mode not in {"reduced", "complete", "r"}:
        raise RuntimeError(f"qr received unrecognized mode '{mode}'")
    factors, tau = geqrf(A)
    rows, columns = A.shape[-2:]
    size = rows if mode == "complete" else min(rows, columns)
    R = factors[..., :size, :].triu()
    if mode == "r":
        return A.new_empty(0), R
    reflectors = flat(factors)
    unit = torch.eye(rows, size, device=A.device).expand(reflectors.shape[0], rows, size)
    Q = _apply(reflectors, tau.reshape(reflectors.shape[0], tau.shape[-1]), unit, False)
    return Q.reshape(*A.shape[:-2], rows, size), R


def lstsq(
    self: Tensor, b: Tensor, rcond: float | None = None, *, driver: str | None = None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Least squares of a matrix of full rank: solution, residuals, and two empty tensors.

    UnsupportedOp for a driver that takes other matrices, LinAlgError for a matrix that is one.
    """
    if driver not in (None, "gels"):
        raise UnsupportedOp("aten.linalg_lstsq.default", "driver", driver, "gels, of full rank")
    rows, columns = self.shape[-2:]
    vector = b.dim() == 1 or (self.dim() - 1 == b.dim() and b.shape == self.shape[:-1])
    right = b.unsqueeze(-1) if vector else b
    if rows >= columns:
        Q, R = qr(self)
        found = substitute(R, transposed(Q) @ right, True, False)
    else:
        Q, R = qr(transposed(self))
        found = Q @ substitute(transposed(R), right, False, False)
    size = R.diagonal(0, -2, -1).abs()
    if size.numel() and bool((size <= size.amax(-1, True) * max(rows, columns) * 2.0**-23).any()):
        raise torch.linalg.LinAlgError("linalg.lstsq: a matrix is not of full rank")  # type: ignore[attr-defined]
    residuals = self.new_empty(0)
    if rows > columns:
        gap = right - self @ found
        residuals = (gap * gap).sum(-2)
    rank = torch.empty(0, dtype=torch.int64, device=self.device)
    return found.squeeze(-1) if vector else found, residuals, rank, self.new_empty(0)


# ---------------------------------------------------------------------- Jacobi
def _rounds(size: int) -> list[tuple[list[int], list[int]]]:
    """Every pair of columns once, in size − 1 rounds of disjoint pairs; size is even."""
    order = list(range(size))
    found = []
    for _ in range(size - 1):
        found.append((order[: size // 2], order[: size // 2 - 1 : -1]))
        order = [order[0], order[-1], *order[1:-1]]
    return found


def _angles(difference: Tensor, product: Tensor) -> tuple[Tensor, Tensor]:
    """cos and sin of the rotation that makes `product` 0."""
    none = product == 0
    zeta = difference / (2 * torch.where(none, 1.0, product))
    sign = torch.where(zeta < 0, -1.0, 1.0)
    tangent = sign / (zeta.abs() + (1 + zeta * zeta).sqrt())
    cosine = (1 + tangent * tangent).rsqrt()
    return torch.where(none, 1.0, cosine), torch.where(none, 0.0, cosine * tangent)


def _rotate(columns: Tensor, one: Tensor, other: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Two sets of columns, each pair rotated by its own angle."""
    a, b = columns.index_select(2, one), columns.index_select(2, other)
    cos, sin = cos[:, None], sin[:, None]
    found = columns.index_copy(2, one, cos * a - sin * b)
    return found.index_copy(2, other, sin * a + cos * b)


def _padded(matrix: Tensor) -> Tensor:
    """With a column of zeros if their number is odd."""
    return torch.nn.functional.pad(matrix, (0, matrix.shape[-1] % 2))


def _orthogonal_columns(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """A·V with orthogonal columns, and V; [batch, rows ≥ columns, columns]."""
    size = matrix.shape[2]
    found = _padded(matrix)
    width = found.shape[2]
    turned = torch.eye(width, device=matrix.device).expand(found.shape[0], width, width)
    rounds = [
        (torch.tensor(one, device=matrix.device), torch.tensor(other, device=matrix.device))
        for one, other in _rounds(width)
    ]
    for _ in range(SWEEPS if size > 1 else 0):
        for one, other in rounds:
            a, b = found.index_select(2, one), found.index_select(2, other)
            cos, sin = _angles((b * b).sum(1) - (a * a).sum(1), (a * b).sum(1))
            found = _rotate(found, one, other, cos, sin)
            turned = _rotate(turned, one, other, cos, sin)
    return found[:, :, :size], turned[:, :size, :size]


def svd(
    A: Tensor, full_matrices: bool = False, compute_uv: bool = True, *, driver: str | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """U, the singular values from the largest on, and Vᵀ; U and Vᵀ empty if not wanted."""
    checked("aten._linalg_svd.default", A)
    rows, columns = A.shape[-2:]
    if rows < columns:
        V, S, Uh = svd(transposed(A), full_matrices, compute_uv)
        if not compute_uv:
            return V, S, Uh
        return transposed(Uh), S, transposed(V)
    given = flat(A)
    size = _size(given, 1, 2)[:, None] if given.numel() else given.new_ones(given.shape[0], 1)
    found, V = _orthogonal_columns(given / size[..., None])
    S, order = (found * found).sum(1).sqrt().sort(-1, descending=True)
    S = S * size
    lead = A.shape[:-2]
    if not compute_uv:
        return A.new_empty(0), S.reshape(*lead, columns), A.new_empty(0)
    places = order[:, None]
    V = V.gather(2, places.expand(V.shape))
    ordered = found.gather(2, places.expand(found.shape))
    # Q of the ordered columns is U with other signs, and orthogonal where columns are near 0.
    U, R = qr(ordered, "complete" if full_matrices else "reduced")
    sign = torch.where(R.diagonal(0, -2, -1) < 0, -1.0, 1.0)
    U = torch.cat([U[..., :columns] * sign[:, None], U[..., columns:]], -1)
    return (
        U.reshape(*lead, rows, U.shape[-1]),
        S.reshape(*lead, columns),
        transposed(V).reshape(*lead, columns, columns),
    )


def eigh(A: Tensor, UPLO: str = "L", compute_v: bool = True) -> tuple[Tensor, Tensor]:
    """Eigenvalues of a symmetric matrix from the least on, and its eigenvectors as columns."""
    checked("aten._linalg_eigh.default", A)
    half = A.tril() if UPLO.upper() == "L" else A.triu()
    strict = half - torch.diag_embed(half.diagonal(0, -2, -1))
    matrix = flat(half + transposed(strict))
    size = matrix.shape[2]
    if size % 2:
        matrix = torch.nn.functional.pad(matrix, (0, 1, 0, 1))
    width = matrix.shape[2]
    turned = torch.eye(width, device=A.device).expand(matrix.shape)
    rounds = [
        (torch.tensor(one, device=A.device), torch.tensor(other, device=A.device))
        for one, other in _rounds(width)
    ]
    for _ in range(SWEEPS if size > 1 else 0):
        for one, other in rounds:
            diagonal = matrix.diagonal(0, 1, 2)
            beside = matrix[:, one, other]
            difference = diagonal[:, other] - diagonal[:, one]
            cos, sin = _angles(difference, beside)
            turned = _rotate(turned, one, other, cos, sin)
            matrix = _rotate(matrix, one, other, cos, sin)
            matrix = transposed(_rotate(transposed(matrix), one, other, cos, sin))
    values, order = matrix.diagonal(0, 1, 2)[:, :size].sort(-1)
    lead = A.shape[:-2]
    if not compute_v:
        return values.reshape(*lead, size), A.new_empty(0)
    vectors = turned[:, :size, :size]
    vectors = vectors.gather(2, order[:, None].expand(vectors.shape))
    return values.reshape(*lead, size), vectors.reshape(A.shape)


def matrix_exp(self: Tensor) -> Tensor:
    """e^A: Taylor's series of A ÷ 2ˢ, squared s times."""
    checked("aten.linalg_matrix_exp.default", self)
    if not self.numel():
        return self.clone()
    matrices = flat(self)
    norms = matrices.abs().sum(-1).amax(-1).tolist()
    squares = [
        max(0, math.ceil(math.log2(norm)) - 1) if math.isfinite(norm) and norm else 0
        for norm in norms
    ]
    factors = torch.tensor([2.0**-count for count in squares], device=self.device)
    scaled = matrices * factors[:, None, None]
    unit = torch.eye(self.shape[-1], device=self.device).expand(matrices.shape)
    found = unit
    for order in range(_TERMS, 0, -1):
        found = unit + scaled @ found * (1.0 / order)
    left = torch.tensor(squares, device=self.device)[:, None, None]
    for done in range(max(squares)):
        found = torch.where(left > done, found @ found, found)
    return found.reshape(self.shape)


_TERMS = 18
"""2¹⁹ ÷ 19! is below 2⁻³⁷."""

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "geqrf": geqrf,
    "linalg_householder_product": householder_product,
    "ormqr": ormqr,
    "linalg_qr": qr,
    "linalg_lstsq": lstsq,
    "_linalg_svd": svd,
    "_linalg_eigh": eigh,
    "linalg_matrix_exp": matrix_exp,
}
DEFINITIONS: dict[str, Callable[..., Any]] = {
    f"aten.{name}.default": function for name, function in _FUNCTIONS.items()
}
