# SPDX-License-Identifier: Apache-2.0
"""LeNet-5 on scikit-learn's handwritten digits.

Y. LeCun et al., Gradient-based learning applied to document recognition, Proc. IEEE 86, 1998:
32×32 input, two convolutions with tanh and average pooling, three fully connected layers.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits

from workloads._weights import checkpoint_weights, random_weights

DESCRIPTION = "LeNet-5 on 16 handwritten digits"
BATCH = 16
UPSCALE = 4  # the digits are 8×8; LeNet-5 reads 32×32


class LeNet5(torch.nn.Module):
    """Images [batch, 1, 32, 32] to class scores [batch, 10]."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = torch.nn.Conv2d(1, 6, 5)
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


def build(seed: int, checkpoint: Path | None) -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    """The module and its inputs: 16 images, each pixel repeated 4×4, in -1…1."""
    module = LeNet5().eval()
    if checkpoint is None:
        random_weights(module, torch.Generator().manual_seed(seed), std=0.1)
    else:
        checkpoint_weights(module, checkpoint)
    digits = load_digits().images[:BATCH] / 8.0 - 1.0
    images = np.kron(digits, np.ones((UPSCALE, UPSCALE)))[:, None]
    return module, (torch.tensor(images, dtype=torch.float32),)
