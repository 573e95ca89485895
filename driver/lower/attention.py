# SPDX-License-Identifier: Apache-2.0
"""Scaled dot product attention and rotary embedding.

Scores are fp32 in fresh memory; weights are divided by their sum after the product with the values,
where there are fewer numbers to divide. Grouped queries read their key and value in place.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from driver.isa import DType
from driver.lower.builder import ProgramBuilder
from driver.lower.convert import as_type, is_float, number
from driver.lower.functions import variant
from driver.lower.matmul import product
from driver.lower.norm import LOWEST
from driver.lower.registry import LoweringTable, Scalar
from driver.runtime.views import TensorView

TABLE = LoweringTable()


@dataclass(frozen=True)
class Attention:
    """The operands: query, key and value as [batch…, heads, groups, rows, columns].

    `groups` queries share a key and value head; heads of keys and values have stride 0 there.
    """

    query: TensorView
    key: TensorView
    value: TensorView
    mask: TensorView | None
    is_causal: bool
    scale: float


@dataclass(frozen=True)
class _Weights:
    """e^(scale·score − peak) of every pair, and per row their sum and the peak, all fp32."""

    powers: TensorView
    total: TensorView
    peak: TensorView
    factor: float
    """What a score, and so the peak, is yet to be multiplied by."""


def grouped(b: ProgramBuilder, view: TensorView, heads: int, groups: int) -> TensorView:
    """[…, heads·groups or heads, rows, columns] as [..., heads, groups, rows, columns]."""
    if view.rank < 3:
        return view.inserted(0).inserted(0)
    if view.sizes[-3] == heads * groups:
        return view.split(-3, (heads, groups))
    if view.sizes[-3] != heads:
        raise b.unsupported("heads", view.sizes, f"{heads} or {heads * groups} heads")
    return view.inserted(view.rank - 2, groups)


def read_attention(
    b: ProgramBuilder,
    query: TensorView,
    key: TensorView,
    value: TensorView,
    mask: TensorView | None,
    is_causal: bool,
    scale: Scalar | None,
) -> Attention:
    """The operands of a call; UnsupportedOp for shapes that do not go together."""
    if not is_float(query) or query.rank < 2:
        raise b.unsupported("query", f"{query.dtype.name} {query.sizes}", "floats [..., L, E]")
    heads = key.sizes[-3] if key.rank > 2 else 1
    groups = query.sizes[-3] // heads if query.rank > 2 else 1
    factor = 1.0 / math.sqrt(query.sizes[-1]) if scale is None else float(scale)
    if is_causal and mask is not None:
        raise b.unsupported("attn_mask", mask.sizes, "none beside is_causal")
    query, key, value = (grouped(b, view, heads, groups) for view in (query, key, value))
    if mask is not None:
        scores = (*query.sizes[:-1], key.sizes[-2])
        flat = (*scores[:-4], heads * groups, *scores[-2:])
        mask = b.expanded(mask, flat[-2:] if query.rank == 4 and mask.rank == 2 else flat)
        mask = grouped(b, mask, heads, groups)
        mask = b.expanded(mask, scores)
    return Attention(query, key, value, mask, is_causal, factor)


def scores_of(b: ProgramBuilder, call: Attention) -> tuple[TensorView, float]:
    """query·keyᵀ, scaled and masked, in fp32; what it is yet to be multiplied by."""
    rows, columns = call.query.sizes[-2], call.key.sizes[-2]
    scores = b.temp(DType.FP32, (*call.query.sizes[:-1], columns))
    product(b, call.query, call.key.transposed(), scores)
    if call.is_causal:
        last = b.temp(DType.INT32, (rows, 1))
        b.vector("int_range", (), last.transposed(), 0, 1)
        b.vector("scale_causal", (scores, last), scores, call.scale)
    elif call.mask is not None and is_float(call.mask):
        b.vector("add", (call.mask, scores), scores, call.scale)
    elif call.mask is not None:
        b.vector("scale_where", (scores, call.mask), scores, call.scale)
    elif call.scale > 0:
        return scores, call.scale
    else:
        b.vector("affine", (scores,), scores, call.scale, -0.0)
    return scores, 1.0


def _weights(b: ProgramBuilder, call: Attention, dtype: DType) -> _Weights:
    """Powers of the masked scores, with the accuracy that results of `dtype` need."""
    scores, factor = scores_of(b, call)
    peak, total = (b.temp(DType.FP32, (*scores.sizes[:-1], 1)) for _ in range(2))
    b.vector("amax", (scores,), peak)
    if call.mask is not None:  # a row with nothing to attend to has weights 0, not NaN
        b.vector("clamp", (peak,), peak, LOWEST, math.inf)
    if factor == 1.0:
        b.vector(variant("exp_difference", dtype), (scores, peak), scores)
    else:
        b.vector(variant("exp_scale_difference", dtype), (scores, peak), scores, factor)
    b.vector("sum", (scores,), total)
    return _Weights(scores, total, peak, factor)


def _apply(b: ProgramBuilder, call: Attention, weights: _Weights, out: TensorView) -> None:
    """out = powers·value ÷ total"""
    heads, groups = call.query.sizes[-4:-2]
    out = grouped(b, out, heads, groups)
    sums = out if out.dtype is DType.FP32 else b.temp(DType.FP32, out.sizes)
    product(b, weights.powers, as_type(b, call.value, DType.FP32), sums)
    b.vector("mul", (sums, weights.total), out)


def _invert(b: ProgramBuilder, call: Attention, weights: _Weights) -> None:
    """1 ÷ total in its place; 0 for a row of zeros, which only a mask makes."""
    if call.mask is None:
        b.vector("imm_div", (weights.total,), weights.total, 1.0)
    else:
        b.vector("reciprocal_or_zero", (weights.total,), weights.total)


def check_dropout(b: ProgramBuilder, dropout_p: Scalar) -> None:
    """UnsupportedOp for attention with dropout."""
    if dropout_p:
        raise b.unsupported("dropout_p", dropout_p, "0: inference")


@TABLE.op("scaled_dot_product_attention")
def attention(
    b: ProgramBuilder,
    out: TensorView,
    query: TensorView,
    key: TensorView,
    value: TensorView,
    attn_mask: TensorView | None = None,
    dropout_p: Scalar = 0.0,
    is_causal: bool = False,
    *,
    scale: Scalar | None = None,
    enable_gqa: bool = False,
) -> None:
    """softmax(query·keyᵀ·scale + mask)·value"""
    check_dropout(b, dropout_p)
    call = read_attention(b, query, key, value, attn_mask, is_causal, scale)
    weights = _weights(b, call, out.dtype)
    _invert(b, call, weights)
    _apply(b, call, weights, out)


@TABLE.op("_scaled_dot_product_flash_attention_for_cpu", outputs=2)
def flash_attention(
    b: ProgramBuilder,
    outs: tuple[TensorView, TensorView | None],
    query: TensorView,
    key: TensorView,
    value: TensorView,
    dropout_p: Scalar = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: TensorView | None = None,
    scale: Scalar | None = None,
) -> None:
    """The same, and log Σ e^score per row"""
    out, log_sum = outs
    check_dropout(b, dropout_p)
    call = read_attention(b, query, key, value, attn_mask, is_causal, scale)
    weights = _weights(b, call, out.dtype if log_sum is None else log_sum.dtype)
    if log_sum is not None:
        heads, groups = call.query.sizes[-4:-2]
        logs = b.temp(DType.FP32, weights.total.sizes)
        b.vector("log", (weights.total,), logs)
        target = grouped(b, log_sum.inserted(log_sum.rank), heads, groups)
        if call.mask is None:
            b.vector("add", (logs, weights.peak), target, weights.factor)
        else:  # torch has 0 for a row with nothing to attend to
            b.vector("add", (logs, weights.peak), logs, weights.factor)
            b.vector("where", (weights.total, logs, number(b, 0.0)), target)
    _invert(b, call, weights)
    _apply(b, call, weights, out)


@TABLE.op("_scaled_dot_product_attention_math", outputs=2)
def attention_math(
    b: ProgramBuilder,
    outs: tuple[TensorView, TensorView | None],
    query: TensorView,
    key: TensorView,
    value: TensorView,
    attn_mask: TensorView | None = None,
    dropout_p: Scalar = 0.0,
    is_causal: bool = False,
    dropout_mask: TensorView | None = None,
    *,
    scale: Scalar | None = None,
    enable_gqa: bool = False,
) -> None:
    """The same, and the softmax itself. torch converts a mask of truth values before it comes here,
    and would add it."""
    out, probabilities = outs
    check_dropout(b, dropout_p)
    if dropout_mask is not None:
        raise b.unsupported("dropout_mask", dropout_mask.sizes, "none: inference")
    if attn_mask is not None and not is_float(attn_mask):
        raise b.unsupported("attn_mask", attn_mask.dtype.name, "floats, which are added")
    call = read_attention(b, query, key, value, attn_mask, is_causal, scale)
    weights = _weights(b, call, out.dtype)
    _invert(b, call, weights)
    _apply(b, call, weights, out)
    if probabilities is not None:
        heads, groups = call.query.sizes[-4:-2]
        target = grouped(b, probabilities, heads, groups)
        b.vector("mul", (weights.powers, weights.total), target)


@TABLE.op("npu.rotary")
def rotary(
    b: ProgramBuilder, out: TensorView, x: TensorView, cos: TensorView, sin: TensorView
) -> None:
    """x·cos + rotate_half(x)·sin over the last dimension, rotate_half(x) = [−x₂, x₁]."""
    half = x.sizes[-1] // 2
    if 2 * half != x.sizes[-1]:
        raise b.unsupported("x", x.sizes, "an even last dimension")
    cos, sin = (b.expanded(view, x.sizes) for view in (cos, sin))
    turned = out if out.dtype is DType.FP32 else b.temp(DType.FP32, x.sizes)
    b.vector("mul", (x, cos), turned)
    low, high = (
        tuple(view.sliced(-1, start, half) for view in (x, sin, turned, out)) for start in (0, half)
    )
    b.vector("sub_mul", (high[0], low[1], low[2]), low[3])
    b.vector("mul_add", (low[0], high[1], high[2]), high[3])
