# SPDX-License-Identifier: Apache-2.0
"""An epoch of training LeNet-5 on handwritten digits: forward, backward and Adam, step after step.

The module trains itself when it is called, and then classifies the digits that it has not seen:
every fifth one. The learning rate follows a cosine to zero, as one epoch is all there is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import torch
from torch.nn import functional

from workloads._weights import checkpoint_weights
from workloads.lenet import LeNet5, digits

DESCRIPTION = "an epoch of training LeNet-5 on handwritten digits"
BATCH = 16
LEARNING_RATE = 6e-3
HELD_OUT = 5
"""One of so many digits is for the test."""
GAIN = torch.nn.init.calculate_gain("tanh")


Parameters = list[torch.nn.Parameter]
MakeOptimizer = Callable[[Parameters], torch.optim.Optimizer]


class Epoch(torch.nn.Module):
    """Trains a model on images [count, 1, 28, 28] with their classes, batch by batch.

    `anneal`: the learning rate follows a cosine to zero.
    """

    def __init__(
        self, model: torch.nn.Module, batch: int, optimizer: MakeOptimizer, *, anneal: bool
    ) -> None:
        super().__init__()
        self.model = model
        self._batch, self._make_optimizer, self._anneal = batch, optimizer, anneal

    def forward(
        self, images: torch.Tensor, classes: torch.Tensor, unseen: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """The loss of each step, the scores of `unseen`, and the trained parameters."""
        steps = math.ceil(len(images) / self._batch)
        parameters = list(self.model.parameters())
        optimizer = self._make_optimizer(parameters)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
        losses = []
        with torch.enable_grad():
            for batch, wanted in zip(
                torch.split(images, self._batch), torch.split(classes, self._batch), strict=True
            ):
                optimizer.zero_grad()
                loss = functional.cross_entropy(self.model(batch), wanted)
                torch.autograd.backward(loss)
                optimizer.step()
                if self._anneal:
                    schedule.step()
                losses.append(loss.detach())
        with torch.no_grad():
            scores = self.model(unseen)
        return torch.stack(losses), scores, *(x.detach() for x in parameters)


def fresh(seed: int) -> LeNet5:
    """An untrained LeNet-5, its weights scaled for tanh. Equal seeds give equal weights."""
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        model = LeNet5().train()
        for parameter in model.parameters():
            if parameter.dim() > 1:
                torch.nn.init.xavier_uniform_(parameter, GAIN)
            else:
                torch.nn.init.zeros_(parameter)
    return model


def divided() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Images and classes for the training, images and classes for the test."""
    images, classes = digits()
    unseen = torch.arange(len(images)) % HELD_OUT == HELD_OUT - 1
    return images[~unseen], classes[~unseen], images[unseen], classes[unseen]


def build(
    seed: int, checkpoint: Path | None, *, steps: int | None = None
) -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    """The epoch, or its first steps, and its data in an order of the seed's."""
    model = fresh(seed)
    if checkpoint is not None:
        checkpoint_weights(model, checkpoint)
    images, classes, unseen, _ = divided()
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(images), generator=generator)
    if steps is not None:
        order, unseen = order[: steps * BATCH], unseen[:BATCH]
    epoch = Epoch(model, BATCH, lambda found: torch.optim.Adam(found, LEARNING_RATE), anneal=True)
    return epoch, (images[order], classes[order], unseen)
