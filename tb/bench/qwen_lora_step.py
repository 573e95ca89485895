# SPDX-License-Identifier: Apache-2.0
"""A LoRA training step of two layers of Qwen2.5-0.5B on device "npu", cmodel, next to CPU torch.

Full width: hidden states of 896, 14 heads, MLP of 4864, adapter of rank 8; 64 tokens of bytes.
"""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

import torch

from tb.bench.measure import Measurement, Note, interleaved, timed
from workloads._lora import BYTES, LoraSize, adapted, passages

_SIZE = LoraSize(layers=2, vocabulary=BYTES, tokens=64)
_SEED = 1


class _Tuning:
    """A model with its optimizer and one passage of text."""

    def __init__(self, model: Any, device: str) -> None:
        self._model = model.to(device)
        wanted = [weight for weight in self._model.parameters() if weight.requires_grad]
        self._optimizer = torch.optim.AdamW(wanted, lr=1e-3)
        self._text = passages(1, _SIZE, _SEED, None).to(device)
        self.loss = 0.0

    def step(self) -> None:
        self._optimizer.zero_grad()
        loss = self._model(input_ids=self._text, labels=self._text).loss
        loss.backward()
        self._optimizer.step()
        self.loss = loss.item()


def measure(rounds: int, note: Note) -> Measurement:
    """CPU time of the device ÷ of torch, one thread."""
    torch.set_num_threads(1)
    model = adapted(_SIZE, _SEED, None)
    there, here = _Tuning(copy.deepcopy(model), "npu"), _Tuning(model, "cpu")
    value = interleaved(partial(timed, there.step), partial(timed, here.step), rounds)
    note(f"loss on the device {there.loss:.6f}, on the CPU {here.loss:.6f}")
    return value
