# SPDX-License-Identifier: Apache-2.0
"""Qwen2.5-0.5B, whole: 24 decoder layers and lm_head, prefill of a prompt, then greedy tokens.

The prompt is 16 random token ids; weights are bf16, seeded random numbers or a local checkpoint.
Keys and values of past tokens are tensors of the run like any other: where the ops run on the NPU's
own results they never leave its memory. One capture is one run; the choice of a token is an op.
"""

from __future__ import annotations

from pathlib import Path

import torch
from transformers import DynamicCache, Qwen2ForCausalLM

from workloads._qwen import INITIALIZER_RANGE, architecture, causal_mask
from workloads._weights import checkpoint_weights, random_weights

DESCRIPTION = "Qwen2.5-0.5B, 24 layers and lm_head, prefill of 16 tokens, bf16"
LAYERS = 24
PROMPT = 16


class Greedy(torch.nn.Module):
    """Token ids [1, prompt] to the next `tokens` ids [1, tokens], the likeliest each time."""

    def __init__(self, model: Qwen2ForCausalLM, tokens: int) -> None:
        super().__init__()
        self.model = model.model
        self.lm_head = model.lm_head
        self._tokens = tokens

    def forward(self, prompt: torch.Tensor) -> torch.Tensor:
        """Prefill, then one step for each further token."""
        cache = DynamicCache(config=self.model.config)
        given, positions = prompt, torch.arange(prompt.shape[1])[None]
        chosen: list[torch.Tensor] = []
        dtype = self.lm_head.weight.dtype
        for _ in range(self._tokens):
            seen = cache.get_seq_length()
            mask = torch.zeros((1, 1, 1, seen + 1), dtype=dtype)
            hidden = self.model(
                input_ids=given,
                attention_mask=mask if seen else causal_mask(prompt.shape[1], dtype),
                position_ids=positions,
                past_key_values=cache,
                use_cache=True,
            ).last_hidden_state
            given = self.lm_head(hidden[:, -1:]).argmax(-1)
            positions = positions[:, -1:] + 1
            chosen.append(given)
        return torch.cat(chosen, 1)


def build(
    seed: int,
    checkpoint: Path | None,
    *,
    tokens: int = 4,
    layers: int = LAYERS,
    dtype: str = "bfloat16",
) -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    """The module and its inputs: a prompt of random ids."""
    config = architecture(layers, checkpoint)
    with torch.device("meta"):
        model = Qwen2ForCausalLM(config)
    model = model.to(getattr(torch, dtype)).to_empty(device="cpu")
    model.tie_weights()
    model.model.rotary_emb = type(model.model.rotary_emb)(
        config
    )  # its buffer is computed, not read
    module = Greedy(model, tokens).eval()
    generator = torch.Generator().manual_seed(seed)
    if checkpoint is None:
        random_weights(module, generator, std=INITIALIZER_RANGE)
    else:
        checkpoint_weights(module, checkpoint)
    prompt = torch.randint(0, config.vocab_size, (1, PROMPT), generator=generator)
    return module, (prompt,)
