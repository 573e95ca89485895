# SPDX-License-Identifier: Apache-2.0
"""Matrix products: mm and similar ops. How products are batched; the builder makes the packets."""

from __future__ import annotations

from driver.isa import DType
from driver.lower.builder import ProgramBuilder
from driver.lower.contraction import contract
from driver.lower.convert import as_integer
from driver.lower.long_sums import LONGEST_SUM, in_parts, part_count
from driver.lower.registry import LoweringTable, Scalar
from driver.lower.words import FLOATS
from driver.runtime.views import TensorView

TABLE = LoweringTable()


def product(
    b: ProgramBuilder,
    left: TensorView,
    right: TensorView,
    result: TensorView,
    *,
    start: TensorView | None = None,
    accumulate: bool = False,
) -> None:
    """result = left·right, plus `start`, or += it, for any leading (batch) dimensions, alike in
    all."""
    contract(b, left, right, result, start=start, accumulate=accumulate)


def combine(
    b: ProgramBuilder,
    left: TensorView,
    right: TensorView,
    result: TensorView,
    addend: TensorView | None,
    *,
    beta: Scalar = 1,
    alpha: Scalar = 1,
    alpha_skips: bool = False,
) -> None:
    """result = beta·addend + alpha·left·right. beta = 0 ignores the addend, NaN included, and with
    `alpha_skips` alpha = 0 the product."""
    addend = b.expanded(addend, result.sizes) if addend is not None and beta != 0 else None
    if not left.sizes[-1] or (alpha_skips and alpha == 0):
        _without_product(b, result, addend, beta)
    elif alpha == 1 and (addend is None or (beta == 1 and addend.dtype == result.dtype)):
        _added(b, left, right, result, addend)
    else:
        _scaled(b, left, right, result, addend, beta=beta, alpha=alpha)


def _added(
    b: ProgramBuilder,
    left: TensorView,
    right: TensorView,
    result: TensorView,
    addend: TensorView | None,
) -> None:
    """result = left·right + addend, of one type."""
    if addend is not None and addend.buffer is result.buffer:  # in place, or it may overlap
        b.copy(addend, result)
        product(b, left, right, result, accumulate=True)
    else:
        product(b, left, right, result, start=addend)


def _without_product(
    b: ProgramBuilder, result: TensorView, addend: TensorView | None, beta: Scalar
) -> None:
    """K = 0: nothing to sum."""
    if addend is None:
        b.fill(result, 0)
    elif result.dtype in FLOATS:
        b.vector("affine", (addend,), result, float(beta), -0.0)
    else:
        b.vector("int_affine", (addend,), result, as_integer(b, beta), 0)


def _scaled(
    b: ProgramBuilder,
    left: TensorView,
    right: TensorView,
    result: TensorView,
    addend: TensorView | None,
    *,
    beta: Scalar,
    alpha: Scalar,
) -> None:
    """The product in 32 bits, then one pass that scales, adds and rounds."""
    floats = left.dtype in FLOATS
    whole = result if result.dtype in (DType.FP32, DType.INT32) and addend is None else None
    wide = whole or b.temp(DType.FP32 if floats else DType.INT32, result.sizes)
    product(b, left, right, wide)
    if not floats:
        alpha, beta = as_integer(b, alpha), as_integer(b, beta)
    if addend is None:
        if floats:
            b.vector("affine", (wide,), result, float(alpha), -0.0)
        else:
            b.vector("int_affine", (wide,), result, alpha, 0)
    elif floats:
        b.vector("axpby", (addend, wide), result, float(beta), float(alpha))
    else:
        b.vector("int_axpby", (addend, wide), result, beta, alpha)


def _check_ranks(b: ProgramBuilder, ranks: tuple[int, ...], *views: TensorView) -> None:
    found = tuple(view.rank for view in views)
    if found != ranks:
        raise b.unsupported("ranks", found, f"{ranks}, the result's last")


@TABLE.op("mm", "_int_mm")
def mm(b: ProgramBuilder, out: TensorView, self: TensorView, mat2: TensorView) -> None:
    """self [M, K] · mat2 [K, N]"""
    _check_ranks(b, (2, 2, 2), self, mat2, out)
    combine(b, self, mat2, out, None)


@TABLE.op("bmm")
def bmm(b: ProgramBuilder, out: TensorView, self: TensorView, mat2: TensorView) -> None:
    """self [B, M, K] · mat2 [B, K, N]"""
    _check_ranks(b, (3, 3, 3), self, mat2, out)
    combine(b, self, mat2, out, None)


@TABLE.op("addmm")
def addmm(
    b: ProgramBuilder,
    out: TensorView,
    self: TensorView,
    mat1: TensorView,
    mat2: TensorView,
    *,
    beta: Scalar = 1,
    alpha: Scalar = 1,
) -> None:
    """beta·self + alpha·mat1 [M, K]·mat2 [K, N]"""
    _check_ranks(b, (2, 2, 2), mat1, mat2, out)
    combine(b, mat1, mat2, out, self, beta=beta, alpha=alpha, alpha_skips=True)


@TABLE.op("baddbmm")
def baddbmm(
    b: ProgramBuilder,
    out: TensorView,
    self: TensorView,
    batch1: TensorView,
    batch2: TensorView,
    *,
    beta: Scalar = 1,
    alpha: Scalar = 1,
) -> None:
    """beta·self + alpha·batch1 [B, M, K]·batch2 [B, K, N]"""
    _check_ranks(b, (3, 3, 3), batch1, batch2, out)
    combine(b, batch1, batch2, out, self, beta=beta, alpha=alpha)


@TABLE.op("mv")
def mv(b: ProgramBuilder, out: TensorView, self: TensorView, vec: TensorView) -> None:
    """self [M, K] · vec [K]"""
    _check_ranks(b, (2, 1, 1), self, vec, out)
    combine(b, self, vec.inserted(1), out.inserted(1), None)


@TABLE.op("addmv")
def addmv(
    b: ProgramBuilder,
    out: TensorView,
    self: TensorView,
    mat: TensorView,
    vec: TensorView,
    *,
    beta: Scalar = 1,
    alpha: Scalar = 1,
) -> None:
    """beta·self + alpha·mat [M, K]·vec [K]"""
    _check_ranks(b, (2, 1, 1), mat, vec, out)
    addend = b.expanded(self, out.sizes).inserted(1)
    operands = (mat, vec.inserted(1), out.inserted(1), addend)
    combine(b, *operands, beta=beta, alpha=alpha, alpha_skips=True)


@TABLE.op("dot")
def dot(b: ProgramBuilder, out: TensorView, self: TensorView, tensor: TensorView) -> None:
    """self [K] · tensor [K]; of long ones the sum of the products of their parts"""
    _check_ranks(b, (1, 1, 0), self, tensor, out)
    if self.sizes[0] > LONGEST_SUM and self.dtype in FLOATS:
        _dot_by_parts(b, out, self, tensor)
    else:
        combine(b, self.inserted(0), tensor.inserted(1), out.inserted(0).inserted(0), None)


def _dot_by_parts(b: ProgramBuilder, out: TensorView, self: TensorView, tensor: TensorView) -> None:
    found = b.temp(DType.FP32, (part_count(self.sizes[0]), 1, 1))
    for first, (left, right) in in_parts((self, tensor)):
        target = found.sliced(0, first, left.sizes[0])
        product(b, left.inserted(1), right.inserted(2), target)
    b.vector("sum", (found.reshaped(found.sizes[:1], (1,)),), out.inserted(0))


@TABLE.op("linear")
def linear(
    b: ProgramBuilder,
    out: TensorView,
    input: TensorView,
    weight: TensorView,
    bias: TensorView | None = None,
) -> None:
    """input [..., K] · weightᵀ [K, N] + bias [N]"""
    _check_ranks(b, (2, input.rank), weight, out)
    if not input.sizes or input.sizes[:-1] != out.sizes[:-1]:
        raise b.unsupported("shapes", input.sizes, f"[..., K] for the result {out.sizes}")
    right = weight.transposed()
    bias = None if bias is None else b.expanded(bias, out.sizes)
    if input.rank == 1:
        input, out = input.inserted(0), out.inserted(0)
        bias = None if bias is None else bias.inserted(0)
    right = b.expanded(right, (*input.sizes[:-2], *right.sizes))
    combine(b, input, right, out, bias)
