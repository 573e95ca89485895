# SPDX-License-Identifier: Apache-2.0
"""A model with a LoRA adapter in training, on the CPU or on PyTorch's device "npu", step by step.

The loop is a user's: transformers' model, peft's adapter, torch's AdamW. Steps differ in what users
do: gradients added up over passes, activations computed again in backward, bf16 by autocast.
"""

from __future__ import annotations

import contextlib
import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

LEARNING_RATE = 3e-3
PASSES = 2
"""Of one step that adds up gradients."""

Tensors = Mapping[str, torch.Tensor]


class StepMode(enum.Enum):
    """How a step computes its gradients."""

    PLAIN = "plain"
    ACCUMULATED = "accumulated"
    CHECKPOINTED = "checkpointed"
    BF16 = "bf16"


@dataclass(frozen=True)
class StepResult:
    """What a step leaves, on the CPU."""

    loss: float
    gradients: Tensors
    weights: Tensors
    """Of the adapter, after the step."""


class LoraTraining:
    """Trains the adapter of a model that `workloads._lora.adapted` made."""

    def __init__(self, model: Any, device: str) -> None:
        self.model = model.to(device)
        self._device = device
        trained = [(n, p) for n, p in self.model.named_parameters() if p.requires_grad]
        self._parameters = dict(trained)
        self._optimizer = torch.optim.AdamW(self._parameters.values(), LEARNING_RATE)

    def step(self, passages: torch.Tensor, mode: StepMode) -> StepResult:
        """One step on passages [PASSES, tokens], of which only ACCUMULATED takes more than one."""
        loss, gradients = self.gradients(passages, mode)
        self._optimizer.step()
        return StepResult(loss, gradients, self.weights())

    def gradients(self, passages: torch.Tensor, mode: StepMode) -> tuple[float, Tensors]:
        """The loss and its gradients, without a step."""
        count = PASSES if mode is StepMode.ACCUMULATED else 1
        self._optimizer.zero_grad()
        if mode is StepMode.CHECKPOINTED:
            self.model.gradient_checkpointing_enable({"use_reentrant": False})
        total = 0.0
        for passage in passages[:count]:
            with self._precision(mode):
                loss = self._loss(passage[None].to(self._device)) / count
            loss.backward()
            total += loss.item()
        if mode is StepMode.CHECKPOINTED:
            self.model.gradient_checkpointing_disable()
        return total, {n: _copied(p.grad) for n, p in self._parameters.items()}

    def weights(self) -> Tensors:
        """Of the adapter, copied to the CPU."""
        return {name: _copied(p) for name, p in self._parameters.items()}

    def scores(self, passage: torch.Tensor) -> torch.Tensor:
        """The model's scores [tokens, vocabulary] of a passage, on the CPU."""
        with torch.no_grad():
            found: torch.Tensor = self.model(input_ids=passage[None].to(self._device)).logits[0]
        return found.cpu()

    def _loss(self, tokens: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.model(input_ids=tokens, labels=tokens).loss
        return found

    def _precision(self, mode: StepMode) -> contextlib.AbstractContextManager[Any]:
        if mode is StepMode.BF16:
            return torch.autocast(self._device, torch.bfloat16)
        return contextlib.nullcontext()


def _copied(tensor: torch.Tensor | None) -> torch.Tensor:
    assert tensor is not None, "a parameter of the adapter without a gradient"
    return tensor.detach().to("cpu", copy=True)


# ---------------------------------------------------------------------- comparing
def differing_bits(expected: Tensors, found: Tensors) -> tuple[int, int, str]:
    """Elements compared, how many differ in a bit, and the name of the first tensor that does."""
    compared = differing = 0
    first = ""
    for name, one in expected.items():
        apart = int((one.view(torch.int32) != found[name].view(torch.int32)).sum())
        compared, differing = compared + one.numel(), differing + apart
        first = first or (name if apart else "")
    return compared, differing, first


def relative_distance(expected: Tensors, found: Tensors) -> float:
    """‖found − expected‖ ÷ ‖expected‖ over all tensors together, in float64; ∞ where one is NaN.

    Not element by element: Adam divides by the gradient's own size, so where a gradient is nearly
    zero its last bits decide the sign of a whole step, on every device.
    """
    apart = size = 0.0
    for name, one in expected.items():
        apart += float((found[name].double() - one.double()).square().sum())
        size += float(one.double().square().sum())
    share = math.sqrt(apart / size) if size else math.inf
    return math.inf if math.isnan(share) else share
