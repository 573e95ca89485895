# SPDX-License-Identifier: Apache-2.0
"""One decoder layer of transformers' Qwen2 at the sizes of Qwen2.5-0.5B, 16 tokens, fp32.

Weights are seeded random numbers, or layer 0 of a local checkpoint folder. Offline by nature:
transformers is only asked for its model code.
"""

from __future__ import annotations

from pathlib import Path

import torch
from transformers import Qwen2Config
from transformers.models.qwen2.modeling_qwen2 import Qwen2DecoderLayer, Qwen2RotaryEmbedding

from workloads._weights import checkpoint_weights, random_weights

DESCRIPTION = "Qwen2.5-0.5B decoder layer 0, prefill of 16 tokens, fp32, eager attention"
TOKENS = 16
INITIALIZER_RANGE = 0.02


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
        mask = torch.full((tokens, tokens), torch.finfo(hidden.dtype).min).triu(1)[None, None]
        rotary = self.model.get_submodule("rotary_emb")(hidden, positions)
        output: torch.Tensor = self.model.get_submodule("layers.0")(
            hidden, attention_mask=mask, position_ids=positions, position_embeddings=rotary
        )
        return output


def build(seed: int, checkpoint: Path | None) -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    """The module and its inputs: normal hidden states of 16 tokens."""
    config = Qwen2Config(
        hidden_size=896,
        intermediate_size=4864,
        num_attention_heads=14,
        num_key_value_heads=2,
        num_hidden_layers=1,
        max_position_embeddings=32768,
        rope_parameters={"rope_type": "default", "rope_theta": 1_000_000.0},
        rms_norm_eps=1e-6,
    )
    config._attn_implementation = "eager"
    module = OneLayer(config).eval()
    generator = torch.Generator().manual_seed(seed)
    if checkpoint is None:
        random_weights(module, generator, std=INITIALIZER_RANGE)
    else:
        checkpoint_weights(module, checkpoint)
    return module, (torch.randn(1, TOKENS, config.hidden_size, generator=generator),)
