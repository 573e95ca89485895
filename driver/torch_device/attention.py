# SPDX-License-Identifier: Apache-2.0
"""Attention as accelerators have it in torch, by the rows of the op table for it and its gradient.

The core's choice (core/kernels.cpp) sends here what the rows compute.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

Tensor = torch.Tensor


def _in_rows(x: Tensor) -> Tensor:
    """The same with its last dimension in line, as the row's reference on the CPU wants it."""
    return x if x.stride(-1) == 1 else x.contiguous()


def _mask_of(bias: Tensor | None, query: Tensor, key: Tensor) -> Tensor | None:
    """A mask of four dimensions, the last two of the scores' sizes."""
    if bias is None:
        return None
    mask = bias[(None,) * (4 - bias.dim())]
    return _in_rows(mask.expand(*mask.shape[:2], query.shape[2], key.shape[2]))


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_bias: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    return_debug_mask: bool = False,
    *,
    scale: float | None = None,
) -> tuple[Any, ...]:
    """The result, the logarithms of its sums for the gradient, and what other accelerators add."""
    mask = _mask_of(attn_bias, query, key)
    out, logsumexp = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        *(_in_rows(x) for x in (query, key, value)),
        dropout_p,
        is_causal,
        attn_mask=mask,
        scale=scale,
    )
    return out, logsumexp, None, None, query.shape[2], key.shape[2], None, None, None


def attention_backward(
    grad_out: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_bias: Tensor | None,
    grad_input_mask: Sequence[bool],
    out: Tensor,
    logsumexp: Tensor,
    cum_seq_q: Tensor | None,
    cum_seq_k: Tensor | None,
    max_q: int,
    max_k: int,
    dropout_p: float,
    is_causal: bool,
    philox_seed: Tensor | None,
    philox_offset: Tensor | None,
    *,
    scale: float | None = None,
) -> Any:
    """Gradients of query, key and value; a mask that wants one never comes here."""
    if grad_input_mask[3]:
        return NotImplemented
    mask = _mask_of(attn_bias, query, key)
    given = (_in_rows(x) for x in (grad_out, query, key, value, out))
    found = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward(
        *given, logsumexp, dropout_p, is_causal, attn_mask=mask, scale=scale
    )
    return (*found, None)
