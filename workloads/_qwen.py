# SPDX-License-Identifier: Apache-2.0
"""The architecture of Qwen2.5-0.5B for the workloads that run it or parts of it.

Offline by nature: transformers is only asked for its model code.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch
from transformers import Qwen2Config

from driver.errors import InputError
from driver.regular import read_regular

INITIALIZER_RANGE = 0.02
_CONFIG = "config.json"
_CONFIG_LIMIT = 1 << 20
"""Bytes."""


def architecture(layers: int, checkpoint: Path | None = None) -> Qwen2Config:
    """The real sizes with so many layers, or what a checkpoint's config.json says.

    Attention is eager: its products and softmax are ops of their own, in every torch.
    """
    if checkpoint is not None and (checkpoint / _CONFIG).exists():
        config = _of_checkpoint(checkpoint / _CONFIG)
        config.num_hidden_layers = min(layers, config.num_hidden_layers)
    else:
        config = Qwen2Config(
            vocab_size=151936,
            hidden_size=896,
            intermediate_size=4864,
            num_attention_heads=14,
            num_key_value_heads=2,
            num_hidden_layers=layers,
            max_position_embeddings=32768,
            rope_parameters={"rope_type": "default", "rope_theta": 1_000_000.0},
            rms_norm_eps=1e-6,
            tie_word_embeddings=True,
        )
    config._attn_implementation = "eager"
    return config


def _of_checkpoint(file: Path) -> Qwen2Config:
    """A checkpoint's config.json. InputError when it is none."""
    text = read_regular(file, "a model's configuration", _CONFIG_LIMIT)
    try:
        return Qwen2Config(**json.loads(text))
    except Exception as error:  # transformers checks the fields with errors of many classes
        problem = f"{type(error).__name__}: {error}"
        raise InputError(file, "file", problem, "the configuration of a Qwen2 model") from error


def causal_mask(tokens: int, dtype: torch.dtype) -> torch.Tensor:
    """[1, 1, tokens, tokens]: 0 where a token may look, the type's lowest number elsewhere."""
    lowest = torch.finfo(dtype).min
    return torch.full((tokens, tokens), lowest, dtype=dtype).triu(1)[None, None]
