# SPDX-License-Identifier: Apache-2.0
"""A three-layer perceptron on scikit-learn's handwritten digits. Copy this file to add a model."""

from __future__ import annotations

from pathlib import Path

import torch
from sklearn.datasets import load_digits

from workloads._weights import checkpoint_weights, random_weights

DESCRIPTION = "64-128-64-10 perceptron with ReLU on 16 handwritten digits"
BATCH = 16


def build(seed: int, checkpoint: Path | None) -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    """The module and its inputs: 16 images of 8×8 pixels, flattened, in 0…1."""
    module = torch.nn.Sequential(
        torch.nn.Linear(64, 128),
        torch.nn.ReLU(),
        torch.nn.Linear(128, 64),
        torch.nn.ReLU(),
        torch.nn.Linear(64, 10),
    ).eval()
    if checkpoint is None:
        random_weights(module, torch.Generator().manual_seed(seed), std=0.1)
    else:
        checkpoint_weights(module, checkpoint)
    images = torch.tensor(load_digits().data[:BATCH] / 16.0, dtype=torch.float32)
    return module, (images,)
