# SPDX-License-Identifier: Apache-2.0
"""Architectures of transformers with tiny sizes and seeded random weights, from architectures.yaml.

Nothing touches a network: transformers is only asked for its model code. Not workloads of the
command line one by one: `npu-cosim architectures` runs them all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import transformers

from driver.errors import InputError
from workloads._architecture_table import FILE, ArchitectureTable, Kind, Part, table

BATCH, LENGTH, WRITTEN = 2, 12, 5
"""Sequences, their tokens, and the tokens that a decoder has written so far."""
PADDING = 3
"""Tokens on the left of the second sequence that are none, as in batched generation."""
_WAVE = 400
"""Sound samples."""
_FIRST_WORD = 3
"""The tokens before it stand for padding, begin and end."""

Inputs = dict[str, torch.Tensor]


def build(name: str, seed: int) -> tuple[torch.nn.Module, Inputs]:
    """The model in eval mode and its keyword inputs; equal seeds give equal tensors.

    InputError for an unknown name, or a class that this transformers does not have.
    """
    file = table()
    row = file.architectures.get(name)
    if row is None:
        known = ", ".join(file.architectures)
        raise InputError("architectures", "name", name, f"one of {known}")
    parts = {key: _configuration(file, part) for key, part in row.parts.items()}
    config = _configuration(file, row, **parts)
    config.use_cache = False
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        model: torch.nn.Module = _class(row.model)(config).eval()
    return model, _INPUTS[row.inputs](config, torch.Generator().manual_seed(seed))


def silence() -> None:
    """No warnings of transformers about sizes as small as these."""
    transformers.logging.set_verbosity_error()  # type: ignore[no-untyped-call]


def _configuration(file: ArchitectureTable, part: Part, **given: Any) -> Any:
    """Attention is eager: its products and softmax are ops of their own."""
    base = {} if part.base is None else file.bases[part.base]
    config = _class(part.config)(**{**base, **part.sizes, **given})
    config._attn_implementation = "eager"
    return config


def _class(name: str) -> Any:
    found = getattr(transformers, name, None)
    if found is None:
        raise InputError(
            FILE, name, "unknown", f"a class of transformers {transformers.__version__}"
        )
    return found


def _tokens(config: Any, generator: torch.Generator) -> Inputs:
    return {"input_ids": _words(config, (BATCH, LENGTH), generator)}


def _padded(config: Any, generator: torch.Generator) -> Inputs:
    mask = torch.ones(BATCH, LENGTH, dtype=torch.int64)
    mask[1, :PADDING] = 0
    return {**_tokens(config, generator), "attention_mask": mask}


def _translation(config: Any, generator: torch.Generator) -> Inputs:
    written = _words(config, (BATCH, WRITTEN), generator)
    return {**_padded(config, generator), "decoder_input_ids": written}


def _image(config: Any, generator: torch.Generator) -> Inputs:
    side = getattr(getattr(config, "vision_config", config), "image_size", 32)
    return {"pixel_values": torch.randn(1, 3, side, side, generator=generator)}


def _image_and_text(config: Any, generator: torch.Generator) -> Inputs:
    words = {name: tensor[:1] for name, tensor in _padded(config, generator).items()}
    return {**words, **_image(config, generator)}


def _features(config: Any, generator: torch.Generator) -> Inputs:
    bins = config.num_mel_bins
    if not hasattr(config, "max_source_positions"):
        return {"input_values": torch.randn(1, config.max_length, bins, generator=generator)}
    frames = 2 * config.max_source_positions
    return {
        "input_features": torch.randn(1, bins, frames, generator=generator),
        "decoder_input_ids": _words(config, (1, WRITTEN), generator),
    }


def _waveform(config: Any, generator: torch.Generator) -> Inputs:
    return {"input_values": torch.randn(1, _WAVE, generator=generator)}


def _series(config: Any, generator: torch.Generator) -> Inputs:
    shape = (BATCH, config.context_length, config.num_input_channels)
    return {"past_values": torch.randn(shape, generator=generator)}


def _words(config: Any, shape: tuple[int, int], generator: torch.Generator) -> torch.Tensor:
    words = getattr(config, "text_config", config).vocab_size
    return torch.randint(_FIRST_WORD, words, shape, generator=generator)


_INPUTS: dict[Kind, Callable[[Any, torch.Generator], Inputs]] = {
    "tokens": _tokens,
    "padded": _padded,
    "translation": _translation,
    "image": _image,
    "image and text": _image_and_text,
    "features": _features,
    "waveform": _waveform,
    "series": _series,
}
