# SPDX-License-Identifier: Apache-2.0
"""Steps of training the LeNet that tutorials show: relu, max_pool, batches of 4, momentum."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from workloads._weights import checkpoint_weights
from workloads.lenet_train import Epoch, divided

DESCRIPTION = "steps of training a LeNet of relu and max_pool, batches of 4"
BATCH = 4
STEPS = 12
LEARNING_RATE = 0.01
MOMENTUM = 0.9


class TutorialNet(nn.Module):
    """Images [batch, 1, 28, 28] to class scores [batch, 10]."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5)
        self.pool = nn.MaxPool2d(2, 2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * 4 * 4, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Class scores, before softmax."""
        x = self.pool(torch.relu(self.conv1(x)))
        x = self.pool(torch.relu(self.conv2(x)))
        x = torch.flatten(x, 1)
        x = torch.relu(self.fc1(x))
        x = torch.relu(self.fc2(x))
        scores: torch.Tensor = self.fc3(x)
        return scores


def build(seed: int, checkpoint: Path | None) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """The steps, and their images in an order of the seed's."""
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        model = TutorialNet().train()
    if checkpoint is not None:
        checkpoint_weights(model, checkpoint)
    images, classes, unseen, _ = divided()
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(seed))
    order = order[: STEPS * BATCH]
    steps = Epoch(model, BATCH, _sgd, anneal=False)
    return steps, (images[order], classes[order], unseen[:BATCH])


def _sgd(parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, LEARNING_RATE, MOMENTUM)
