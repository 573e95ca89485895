# SPDX-License-Identifier: Apache-2.0
"""Gradients of scaled dot product attention, from its result and the logarithm of its sums.

With P = e^(scale·Q·Kᵀ + mask − logsumexp), computed again, and D = Σ grad·out per row:

    grad_value = Pᵀ·grad, S = P·(grad·Vᵀ − D), grad_query = scale·S·K, grad_key = scale·Sᵀ·Q

Everything between packets is fp32. Queries that share a key add up in one product.
"""

from __future__ import annotations

from driver.isa import DType
from driver.lower.attention import (
    Attention,
    check_dropout,
    grouped,
    read_attention,
    scores_of,
)
from driver.lower.builder import ProgramBuilder
from driver.lower.contraction import contract
from driver.lower.convert import as_type, convert
from driver.lower.matmul import product
from driver.lower.registry import LoweringTable, Scalar
from driver.runtime.views import TensorView

TABLE = LoweringTable()


@TABLE.op("_scaled_dot_product_flash_attention_for_cpu_backward", outputs=3)
def attention_backward(
    b: ProgramBuilder,
    outs: tuple[TensorView | None, ...],
    grad_out: TensorView,
    query: TensorView,
    key: TensorView,
    value: TensorView,
    out: TensorView,
    logsumexp: TensorView,
    dropout_p: Scalar,
    is_causal: bool,
    *,
    attn_mask: TensorView | None = None,
    scale: Scalar | None = None,
) -> None:
    """Five products and a pass of e^x"""
    check_dropout(b, dropout_p)
    call = read_attention(b, query, key, value, attn_mask, is_causal, scale)
    heads, groups = call.query.sizes[-4:-2]
    grad, result = (grouped(b, view, heads, groups) for view in (grad_out, out))
    sums = grouped(b, logsumexp.inserted(logsumexp.rank), heads, groups)
    powers = _powers(b, call, sums)
    grad_query, grad_key, grad_value = outs
    if grad_value is not None:
        found = _over_rows(b, powers, grad)
        convert(b, found, grouped(b, grad_value, heads, 1))
    if grad_query is None and grad_key is None:
        return
    slopes = _slopes(b, call, powers, grad, result)
    if grad_query is not None:
        found = b.temp(DType.FP32, call.query.sizes)
        product(b, slopes, as_type(b, call.key, DType.FP32), found)
        b.vector("affine", (found,), grouped(b, grad_query, heads, groups), call.scale, -0.0)
    if grad_key is not None:
        found = _over_rows(b, slopes, call.query)
        b.vector("affine", (found,), grouped(b, grad_key, heads, 1), call.scale, -0.0)


def _powers(b: ProgramBuilder, call: Attention, sums: TensorView) -> TensorView:
    """P: e^(score − the logarithm of the row's sum). The score is rounded as it was for that
    logarithm: their last places are worth e^(±½ ulp) in P where scores are large."""
    scores, factor = scores_of(b, call)
    b.vector("exp_scaled_minus", (scores, sums), scores, factor)
    return scores


def _slopes(
    b: ProgramBuilder, call: Attention, powers: TensorView, grad: TensorView, result: TensorView
) -> TensorView:
    """S: P·(grad·Vᵀ − D)."""
    terms = b.temp(DType.FP32, grad.sizes)
    total = b.temp(DType.FP32, (*grad.sizes[:-1], 1))
    b.vector("mul", (grad, result), terms)
    b.vector("sum", (terms,), total)
    slopes = b.temp(DType.FP32, powers.sizes)
    product(b, grad, call.value.transposed(), slopes)
    b.vector("sub_scale", (slopes, total, powers), slopes)
    return slopes


def _over_rows(b: ProgramBuilder, weights: TensorView, x: TensorView) -> TensorView:
    """weightsᵀ·x of weights [..., heads, groups, L, S] and x [..., heads, groups, L, E]: the sums
    over groups and L, [..., heads, 1, S, E], in fp32."""
    lead = range(weights.rank - 3)
    found = b.temp(DType.FP32, (*weights.sizes[:-3], 1, weights.sizes[-1], x.sizes[-1]))
    left = weights.permuted([*lead, -1, -3, -2])
    contract(b, left, as_type(b, x, DType.FP32), found.selected(-3, 0), (1, 2, 1))
    return found
