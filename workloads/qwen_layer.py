# SPDX-License-Identifier: Apache-2.0
"""One decoder layer of transformers' Qwen2 at the sizes of Qwen2.5-0.5B: prefill of some tokens.

Weights are seeded random numbers, or layer 0 of a local checkpoint folder.
"""

from __future__ import annotations

from pathlib import Path

import torch
from transformers import Qwen2Config
from transformers.models.qwen2.modeling_qwen2 import Qwen2DecoderLayer, Qwen2RotaryEmbedding

from workloads._qwen import INITIALIZER_RANGE, architecture, causal_mask
from workloads._weights import checkpoint_weights, random_weights

DESCRIPTION = "Qwen2.5-0.5B decoder layer 0, eager attention"


class OneLayer(torch.nn.Module):
    """Hidden states [1, tokens, 896] through rotary embedding, causal mask and one layer.

    The layer sits where it sits in the whole model, so parameter names and module paths are
    those of a checkpoint: model.layers.0.self_attn.q_proj.
    """

    def __init__(self, config: Qwen2Config) -> None:
        super().__init__()
        self.model = torch.nn.Module()
        self.model.rotary_emb = Qwen2RotaryEmbedding(config)
        self.model.layers = torch.nn.ModuleList([Qwen2DecoderLayer(config, 0)])

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """The layer's output, of the shape of its input."""
        tokens = hidden.shape[1]
        positions = torch.arange(tokens)[None]
        rotary = self.model.get_submodule("rotary_emb")(hidden, positions)
        output: torch.Tensor = self.model.get_submodule("layers.0")(
            hidden,
            attention_mask=causal_mask(tokens, hidden.dtype),
            position_ids=positions,
            position_embeddings=rotary,
        )
        return output


def build(
    seed: int, checkpoint: Path | None, *, tokens: int = 16, dtype: str = "float32"
) -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    """The module and its inputs: normal hidden states of so many tokens."""
    config = architecture(1, checkpoint)
    element = getattr(torch, dtype)
    module = OneLayer(config).eval()
    module.model.layers.to(element)  # rotary embedding stays fp32, as in the whole model
    generator = torch.Generator().manual_seed(seed)
    if checkpoint is None:
        random_weights(module, generator, std=INITIALIZER_RANGE)
    else:
        checkpoint_weights(module, checkpoint)
    hidden = torch.randn(1, tokens, config.hidden_size, generator=generator)
    return module, (hidden.to(element),)
