# SPDX-License-Identifier: Apache-2.0
"""LeNet-5, trained here on scikit-learn's handwritten digits, classifying 64 it has never seen.

Y. LeCun et al., Gradient-based learning applied to document recognition, Proc. IEEE 86, 1998: two
convolutions with tanh and average pooling, three fully connected layers. The digits are 8×8, and
are enlarged to the 28×28 of MNIST. Training is seeded and takes seconds on the CPU.
"""

from __future__ import annotations

from pathlib import Path

import torch
from sklearn.datasets import load_digits

from workloads._weights import checkpoint_weights, single_thread

DESCRIPTION = "LeNet-5 trained on handwritten digits, 64 of them classified"
BATCH = 64
SIDE = 28
TRAINING = 1437  # images, the others are for tests
EPOCHS = 6
TRAINING_BATCH = 32
LEARNING_RATE = 4e-3


class LeNet5(torch.nn.Module):
    """Images [batch, 1, 28, 28] to class scores [batch, 10]."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = torch.nn.Conv2d(1, 6, 5, padding=2)
        self.conv2 = torch.nn.Conv2d(6, 16, 5)
        self.fc1 = torch.nn.Linear(16 * 5 * 5, 120)
        self.fc2 = torch.nn.Linear(120, 84)
        self.fc3 = torch.nn.Linear(84, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Class scores, before softmax."""
        pool = torch.nn.functional.avg_pool2d
        hidden = pool(torch.tanh(self.conv1(images)), 2)
        hidden = pool(torch.tanh(self.conv2(hidden)), 2)
        hidden = torch.tanh(self.fc1(hidden.flatten(1)))
        hidden = torch.tanh(self.fc2(hidden))
        scores: torch.Tensor = self.fc3(hidden)
        return scores


def digits() -> tuple[torch.Tensor, torch.Tensor]:
    """All images [1797, 1, 28, 28], pixels in -1…1, and their digits."""
    found = load_digits()
    small = torch.tensor(found.images[:, None] / 8.0 - 1.0, dtype=torch.float32)
    large = torch.nn.functional.interpolate(small, (SIDE, SIDE), mode="bilinear")
    return large, torch.tensor(found.target)


def held_out() -> tuple[torch.Tensor, torch.Tensor]:
    """The images that `build` gives to the model, none of them trained on, and their digits."""
    images, labels = digits()
    return images[TRAINING : TRAINING + BATCH], labels[TRAINING : TRAINING + BATCH]


def train(seed: int) -> LeNet5:
    """A trained model; equal seeds give equal weights."""
    images, labels = (tensor[:TRAINING] for tensor in digits())
    with torch.random.fork_rng(devices=()), single_thread(), torch.enable_grad():
        torch.manual_seed(seed)
        model = LeNet5().train()
        adam = torch.optim.Adam(model.parameters(), LEARNING_RATE)
        for _ in range(EPOCHS):
            order = torch.randperm(TRAINING)
            for start in range(0, TRAINING, TRAINING_BATCH):
                batch = order[start : start + TRAINING_BATCH]
                adam.zero_grad()
                loss = torch.nn.functional.cross_entropy(model(images[batch]), labels[batch])
                torch.autograd.backward(loss)
                adam.step()
    return model.eval()


def build(seed: int, checkpoint: Path | None) -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    """The module and its inputs: 64 images."""
    if checkpoint is None:
        module: torch.nn.Module = train(seed)
    else:
        module = LeNet5().eval()
        checkpoint_weights(module, checkpoint)
    return module, (held_out()[0],)
