# SPDX-License-Identifier: Apache-2.0
"""`python tests/resumable_training.py CHECKPOINT`: a training as its user writes it, with dropout
and shuffled batches. It goes on from CHECKPOINT if there is one, and leaves one after every step.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EPOCHS = 3
BATCH = 8
IMAGES = 40


def load(path: Path, model: nn.Module, optimizer: Any, order: torch.Generator) -> tuple[int, int]:
    """Epoch and batch to go on with."""
    state = torch.load(path, map_location="npu")
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    torch.set_rng_state(state["cpu_rng"].cpu())
    torch.npu.set_rng_state(state["npu_rng"].cpu())
    order.set_state(state["order"].cpu())
    return state["epoch"], state["batch"]


def save(path: Path, **state: Any) -> None:
    """The whole file or none of it: the process may be killed at any moment."""
    fresh = path.with_suffix(".new")
    torch.save(state, fresh)
    fresh.replace(path)


def main(path: Path) -> None:
    torch.manual_seed(7)
    data = torch.randn(IMAGES, 1, 12, 12), torch.randint(0, 4, (IMAGES,))
    model = nn.Sequential(
        *(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.25), nn.Flatten()),
        *(nn.Linear(100, 16), nn.Tanh(), nn.Dropout(0.5), nn.Linear(16, 4)),
    ).to("npu")
    optimizer = torch.optim.AdamW(model.parameters(), 0.01)
    order = torch.Generator().manual_seed(3)
    loader = DataLoader(TensorDataset(*data), BATCH, shuffle=True, generator=order)
    began, skipped = load(path, model, optimizer, order) if path.exists() else (0, 0)
    for epoch in range(began, EPOCHS):
        shuffled = order.get_state()
        for number, (images, classes) in enumerate(loader):
            if epoch == began and number < skipped:
                continue
            optimizer.zero_grad()
            scores = model(images.to("npu"))
            loss = nn.functional.cross_entropy(scores, classes.to("npu"))
            loss.backward()
            optimizer.step()
            save(
                path,
                model=model.state_dict(),
                optimizer=optimizer.state_dict(),
                cpu_rng=torch.get_rng_state(),
                npu_rng=torch.npu.get_rng_state(),
                order=shuffled,
                epoch=epoch,
                batch=number + 1,
            )
            sys.stdout.write(f"epoch {epoch} batch {number} loss {loss.item()!r}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
