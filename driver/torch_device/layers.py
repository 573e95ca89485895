# SPDX-License-Identifier: Apache-2.0
"""Layers that torch fuses on accelerators, recurrent cells and attention: by ops with rows."""

from __future__ import annotations

import math

import torch
from torch.nn.functional import gelu, layer_norm, linear, relu

Tensor = torch.Tensor


# ---------------------------------------------------------------------- recurrent cells
def _with_bias(gates: Tensor, bias: Tensor | None) -> Tensor:
    return gates if bias is None else gates + bias


def lstm_cell(
    input_gates: Tensor,
    hidden_gates: Tensor,
    cx: Tensor,
    input_bias: Tensor | None = None,
    hidden_bias: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """New hidden state, new cell state, and the gates [batch, 4·size] for the gradient."""
    sums = _with_bias(input_gates, input_bias) + _with_bias(hidden_gates, hidden_bias)
    entry, forget, cell, output = sums.chunk(4, 1)
    entry, forget, output = entry.sigmoid(), forget.sigmoid(), output.sigmoid()
    cell = cell.tanh()
    cy = forget * cx + entry * cell
    return output * cy.tanh(), cy, torch.cat([entry, forget, cell, output], 1)


def lstm_cell_backward(
    grad_hy: Tensor | None,
    grad_cy: Tensor | None,
    cx: Tensor,
    cy: Tensor,
    workspace: Tensor,
    has_bias: bool,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Gradients of the gates, of the old cell state and of the biases."""
    entry, forget, cell, output = workspace.chunk(4, 1)
    grad_hy = torch.zeros_like(cx) if grad_hy is None else grad_hy
    bent = cy.tanh()
    grad = grad_hy * output * (1 - bent * bent)
    grad = grad if grad_cy is None else grad + grad_cy
    gates = torch.cat(
        [
            grad * cell * entry * (1 - entry),
            grad * cx * forget * (1 - forget),
            grad * entry * (1 - cell * cell),
            grad_hy * bent * output * (1 - output),
        ],
        1,
    )
    return gates, grad * forget, gates.sum(0) if has_bias else None


def gru_cell(
    input_gates: Tensor,
    hidden_gates: Tensor,
    hx: Tensor,
    input_bias: Tensor | None = None,
    hidden_bias: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """New hidden state, and what the gradient needs: [batch, 5·size]."""
    reset_in, update_in, new_in = _with_bias(input_gates, input_bias).chunk(3, 1)
    reset_hidden, update_hidden, new_hidden = _with_bias(hidden_gates, hidden_bias).chunk(3, 1)
    reset = (reset_in + reset_hidden).sigmoid()
    update = (update_in + update_hidden).sigmoid()
    new = (new_in + reset * new_hidden).tanh()
    return new + update * (hx - new), torch.cat([reset, update, new, hx, new_hidden], 1)


def gru_cell_backward(
    grad_hy: Tensor, workspace: Tensor, has_bias: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None]:
    """Gradients of both gates, of the old hidden state and of both biases."""
    reset, update, new, hx, new_hidden = workspace.chunk(5, 1)
    of_new = grad_hy * (1 - update) * (1 - new * new)
    of_update = grad_hy * (hx - new) * update * (1 - update)
    of_reset = of_new * new_hidden * reset * (1 - reset)
    of_input = torch.cat([of_reset, of_update, of_new], 1)
    of_hidden = torch.cat([of_reset, of_update, of_new * reset], 1)
    biases = (of_input.sum(0), of_hidden.sum(0)) if has_bias else (None, None)
    return of_input, of_hidden, grad_hy * update, *biases


# ---------------------------------------------------------------------- attention
def _masked(scores: Tensor, mask: Tensor | None, mask_type: int | None) -> Tensor:
    """Scores [batch, heads, L, S] with what the mask hides at minus infinity."""
    if mask is None:
        return scores
    if mask_type == 1:  # which keys are padding: [batch, S]
        mask = mask[:, None, None, :]
    return scores.masked_fill(mask, -math.inf) if mask.dtype is torch.bool else scores + mask


def multi_head_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim: int,
    num_head: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    mask: Tensor | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[Tensor, Tensor | None]:
    """Attention of [batch, length, embed_dim] with itself or another, and its weights."""
    heads = [
        linear(given, weight, bias).reshape(*given.shape[:2], num_head, -1).transpose(1, 2)
        for given, weight, bias in zip(
            (query, key, value), qkv_weight.chunk(3), qkv_bias.chunk(3), strict=True
        )
    ]
    scores = (heads[0] / math.sqrt(embed_dim // num_head)) @ heads[1].transpose(-2, -1)
    weights = _masked(scores, mask, mask_type).softmax(-1)
    made = linear((weights @ heads[2]).transpose(1, 2).flatten(2), proj_weight, proj_bias)
    if not need_weights:
        return made, None
    return made, weights.mean(1) if average_attn_weights else weights


def transformer_encoder_layer(
    src: Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Tensor,
    norm_bias_1: Tensor,
    norm_weight_2: Tensor,
    norm_bias_2: Tensor,
    ffn_weight_1: Tensor,
    ffn_bias_1: Tensor,
    ffn_weight_2: Tensor,
    ffn_bias_2: Tensor,
    mask: Tensor | None = None,
    mask_type: int | None = None,
) -> Tensor:
    """nn.TransformerEncoderLayer without dropout."""

    def attend(x: Tensor) -> Tensor:
        made, _ = multi_head_attention(
            *(x, x, x, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias),
            mask=mask,
            need_weights=False,
            mask_type=mask_type,
        )
        return made

    def feed_forward(x: Tensor) -> Tensor:
        inner = linear(x, ffn_weight_1, ffn_bias_1)
        return linear(gelu(inner) if use_gelu else relu(inner), ffn_weight_2, ffn_bias_2)

    def norm_1(x: Tensor) -> Tensor:
        return layer_norm(x, (embed_dim,), norm_weight_1, norm_bias_1, eps)

    def norm_2(x: Tensor) -> Tensor:
        return layer_norm(x, (embed_dim,), norm_weight_2, norm_bias_2, eps)

    if norm_first:
        x = src + attend(norm_1(src))
        return x + feed_forward(norm_2(x))
    x = norm_1(src + attend(src))
    return norm_2(x + feed_forward(x))


def no_nested_tensor(t: Tensor, mask: Tensor) -> bool:
    """Whether nn.TransformerEncoder may drop padding by a nested tensor: never, there are none.

    It then computes the padded positions too, as in training.
    """
    return False
