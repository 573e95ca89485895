# SPDX-License-Identifier: Apache-2.0
"""Matrix products: mm and similar ops. How products are batched; the builder makes the packets."""

from __future__ import annotations

from driver.isa import DType
from driver.lower.builder import ProgramBuilder
from driver.lower.registry import LoweringTable, Scalar
from driver.lower.words import FLOATS
from driver.runtime.views import TensorView, collapse

TABLE = LoweringTable()


def product(
    b: ProgramBuilder,
    left: TensorView,
    right: TensorView,
    result: TensorView,
    *,
    accumulate: bool = False,
) -> None:
    """result = left·right, or += it, for any number of leading (batch) dimensions, alike in all.

    One packet where the batch dimensions merge; else one for each index of all but the largest.
    """
    lead = left.sizes[:-2]
    if right.sizes[:-2] != lead or result.sizes[:-2] != lead:
        shapes = f"{left.sizes} · {right.sizes} = {result.sizes}"
        raise b.unsupported("shapes", shapes, "batches alike")
    views = (left, right, result)
    sizes, walks = collapse(lead, *(view.strides[:-2] for view in views))
    flat = [
        view.reshaped((*sizes, *view.sizes[-2:]), (*walk, *view.strides[-2:]))
        for view, walk in zip(views, walks, strict=True)
    ]
    _each_batch(b, flat, accumulate)


def _each_batch(b: ProgramBuilder, views: list[TensorView], accumulate: bool) -> None:
    if views[0].rank == 3:
        b.matmul(views[0], views[1], views[2], accumulate=accumulate)
        return
    batches = views[0].sizes[:-2]
    looped = batches.index(min(batches))
    for index in range(batches[looped]):
        _each_batch(b, [view.selected(looped, index) for view in views], accumulate)


def combine(
    b: ProgramBuilder,
    left: TensorView,
    right: TensorView,
    result: TensorView,
    addend: TensorView | None,
    *,
    beta: Scalar = 1,
    alpha: Scalar = 1,
) -> None:
    """result = beta·addend + alpha·left·right. beta = 0 ignores the addend, NaN included."""
    addend = b.expanded(addend, result.sizes) if addend is not None and beta != 0 else None
    if not left.sizes[-1]:
        _without_product(b, result, addend, beta)
    elif alpha == 1 and (addend is None or (beta == 1 and addend.dtype == result.dtype)):
        if addend is not None:
            b.copy(addend, result)
        product(b, left, right, result, accumulate=addend is not None)
    else:
        _scaled(b, left, right, result, addend, beta=beta, alpha=alpha)


def _without_product(
    b: ProgramBuilder, result: TensorView, addend: TensorView | None, beta: Scalar
) -> None:
    """K = 0: nothing to sum."""
    if addend is None:
        b.fill(result, 0)
    elif result.dtype in FLOATS:
        b.vector("affine", (addend,), result, float(beta), -0.0)
    else:
        b.vector("int_affine", (addend,), result, _whole(b, beta), 0)


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
        alpha, beta = _whole(b, alpha), _whole(b, beta)
    if addend is None:
        if floats:
            b.vector("affine", (wide,), result, float(alpha), -0.0)
        else:
            b.vector("int_affine", (wide,), result, alpha, 0)
    elif floats:
        b.vector("axpby", (addend, wide), result, float(beta), float(alpha))
    else:
        b.vector("int_axpby", (addend, wide), result, beta, alpha)


def _whole(b: ProgramBuilder, value: Scalar) -> int:
    if value != int(value):
        raise b.unsupported("scalar", value, "an integer for integer operands")
    return int(value)


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
    combine(b, mat1, mat2, out, self, beta=beta, alpha=alpha)


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
    combine(b, mat, vec.inserted(1), out.inserted(1), addend, beta=beta, alpha=alpha)


@TABLE.op("dot")
def dot(b: ProgramBuilder, out: TensorView, self: TensorView, tensor: TensorView) -> None:
    """self [K] · tensor [K]"""
    _check_ranks(b, (1, 1, 0), self, tensor, out)
    combine(b, self.inserted(0), tensor.inserted(1), out.inserted(0).inserted(0), None)


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
    left, result = rows(b, input, out)
    right = weight.transposed()
    right = b.expanded(right, (*left.sizes[:-2], *right.sizes))
    if bias is not None:
        bias = b.expanded(bias, result.sizes)
    combine(b, left, right, result, bias)


def rows(b: ProgramBuilder, x: TensorView, result: TensorView) -> tuple[TensorView, TensorView]:
    """x and result as [batch, rows, …]: one batch where both allow it, else as few as they do.

    When that takes more than one batch dimension, a dense copy of x is cheaper than many packets.
    """
    sizes, walks = collapse(x.sizes[:-1], x.strides[:-1], result.strides[:-1])
    if len(sizes) > 2:
        fresh = b.temp(x.dtype, x.sizes)
        b.copy(x, fresh)
        x = fresh
        sizes, walks = collapse(x.sizes[:-1], x.strides[:-1], result.strides[:-1])
    if len(sizes) == 1:
        sizes, walks = (1, *sizes), tuple((0, *walk) for walk in walks)
    return (
        x.reshaped((*sizes, x.sizes[-1]), (*walks[0], x.strides[-1])),
        result.reshaped((*sizes, result.sizes[-1]), (*walks[1], result.strides[-1])),
    )
