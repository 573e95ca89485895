# SPDX-License-Identifier: Apache-2.0
"""A training step of a LeNet on PyTorch's device "npu", on the cmodel, next to CPU torch."""

from __future__ import annotations

import copy
from functools import partial

import torch
from torch import nn

from tb.bench.measure import Measurement, Note, interleaved, timed

_BATCH = 32
_STEPS = 4


def _lenet() -> nn.Module:
    return nn.Sequential(
        *(nn.Conv2d(1, 6, 5, padding=2), nn.Tanh(), nn.AvgPool2d(2)),
        *(nn.Conv2d(6, 16, 5), nn.Tanh(), nn.AvgPool2d(2), nn.Flatten()),
        *(nn.Linear(400, 120), nn.Tanh(), nn.Linear(120, 84), nn.Tanh(), nn.Linear(84, 10)),
    )


class _Training:
    """A model with its optimizer and one batch."""

    def __init__(self, model: nn.Module, device: str) -> None:
        self._model = model.to(device)
        self._optimizer = torch.optim.SGD(self._model.parameters(), lr=0.05, momentum=0.9)
        generator = torch.Generator().manual_seed(1)
        self._images = torch.randn(_BATCH, 1, 28, 28, generator=generator).to(device)
        self._classes = torch.randint(0, 10, (_BATCH,), generator=generator).to(device)
        self.loss = 0.0

    def steps(self) -> None:
        for _ in range(_STEPS):
            self._optimizer.zero_grad()
            loss = nn.functional.cross_entropy(self._model(self._images), self._classes)
            loss.backward()
            self._optimizer.step()
            self.loss = loss.item()


def measure(rounds: int, note: Note) -> Measurement:
    """CPU time of the device ÷ of torch, one thread."""
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = _lenet()
    there, here = _Training(copy.deepcopy(model), "npu"), _Training(model, "cpu")
    value = interleaved(partial(timed, there.steps), partial(timed, here.steps), rounds)
    note(f"loss on the device {there.loss:.6f}, on the CPU {here.loss:.6f}")
    return value
