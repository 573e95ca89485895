# SPDX-License-Identifier: Apache-2.0
"""Qwen2.5-0.5B with a LoRA adapter of peft, and the text that it is trained on.

The text is the project's own documentation, byte by byte: a token is a byte, unless a checkpoint
brings its tokenizer. Offline by nature, like the weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, get_peft_model
from tokenizers import Tokenizer
from transformers import Qwen2Config, Qwen2ForCausalLM

from driver.regular import read_regular
from workloads._qwen import INITIALIZER_RANGE, architecture
from workloads._weights import checkpoint_weights, random_weights

_DOCUMENTS = Path(__file__).parents[1] / "docs"
_TOKENIZER = "tokenizer.json"
_TOKENIZER_LIMIT = 1 << 26
"""Bytes."""
RANK = 8
TARGETS = ("q_proj", "v_proj", "gate_proj", "up_proj", "down_proj")
BYTES = 256
"""Tokens that a text of bytes has."""


@dataclass(frozen=True)
class LoraSize:
    """How large a model, and how much text in one pass."""

    layers: int
    vocabulary: int
    tokens: int
    narrow: bool = False
    """Hidden states of 32 instead of 896, for tests of the test."""


WHOLE = LoraSize(layers=24, vocabulary=151936, tokens=32)
TWO_LAYERS = LoraSize(layers=2, vocabulary=BYTES, tokens=16)


def adapted(size: LoraSize, seed: int, checkpoint: Path | None) -> Any:
    """The model with its adapter, on the CPU, in training mode. Equal seeds give equal weights."""
    config = _config(size, checkpoint)
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        model = Qwen2ForCausalLM(config)
        if checkpoint is None:
            generator = torch.Generator().manual_seed(seed)
            random_weights(model, generator, std=INITIALIZER_RANGE)
        else:
            checkpoint_weights(model, checkpoint)
        lora = LoraConfig(r=RANK, lora_alpha=2 * RANK, target_modules=list(TARGETS))
        return get_peft_model(model, lora).train()


def _config(size: LoraSize, checkpoint: Path | None) -> Qwen2Config:
    config = architecture(size.layers, checkpoint)
    if checkpoint is None:
        config.vocab_size = size.vocabulary
    if size.narrow:
        config.hidden_size, config.intermediate_size = 32, 48
        config.num_attention_heads, config.num_key_value_heads = 4, 2
        config.head_dim = 8
    return config


def passages(count: int, size: LoraSize, seed: int, checkpoint: Path | None) -> torch.Tensor:
    """[count, tokens]: so many passages of the documentation, from places of the seed's."""
    files = sorted(_DOCUMENTS.glob("*.md"))
    text = "\n".join(file.read_text(encoding="utf-8") for file in files)
    tokens = _encoded(text, checkpoint)
    generator = torch.Generator().manual_seed(seed)
    places = torch.randint(len(tokens) - size.tokens, (count,), generator=generator).tolist()
    return torch.stack([tokens[at : at + size.tokens] for at in places])


def _encoded(text: str, checkpoint: Path | None) -> torch.Tensor:
    if checkpoint is not None and (checkpoint / _TOKENIZER).exists():
        declared = read_regular(checkpoint / _TOKENIZER, "a tokenizer", _TOKENIZER_LIMIT)
        return torch.tensor(Tokenizer.from_str(declared.decode()).encode(text).ids)
    return torch.tensor(list(text.encode()))
