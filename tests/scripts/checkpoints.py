# SPDX-License-Identifier: Apache-2.0
"""Checkpoints between host and device: torch.save, map_location, safetensors, resumed training."""

import os
import tempfile
from pathlib import Path

import torch
from safetensors.torch import load_file, load_model, save_file, save_model
from torch import nn

device = torch.device(os.environ.get("DEVICE", "npu"))


def build():
    torch.manual_seed(3)
    return nn.Sequential(
        nn.Conv1d(2, 4, 3, padding=1, bias=False),
        nn.BatchNorm1d(4),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(20, 2),
    )


def train(model, optimizer, steps, seed):
    generator = torch.Generator().manual_seed(seed)
    model.train()
    losses = []
    for _ in range(steps):
        x = torch.randn(6, 2, 5, generator=generator).to(device)
        loss = model(x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def through_the_host(folder, same):
    host = build()
    state = torch.load(folder / "checkpoint.pt", map_location="cpu", weights_only=True)
    assert all(t.device.type == "cpu" for t in state["model"].values())
    host.load_state_dict(state["model"])
    torch.save(host.state_dict(), folder / "host.pt")
    there = torch.load(folder / "host.pt", map_location=device, weights_only=True)
    for name, value in there.items():
        assert value.device.type == device.type
        assert same[name].device.type == device.type
        assert torch.equal(value, same[name]), name


model = build().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
losses = train(model, optimizer, 2, seed=1)

with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": 2}
    torch.save(state, folder / "checkpoint.pt")
    save_model(model, folder / "model.safetensors")
    save_file({"x": torch.ones(2, device=device)}, folder / "x.safetensors")

    # Goes on after the checkpoint as if it had never stopped.
    state = torch.load(folder / "checkpoint.pt", map_location=device, weights_only=True)
    resumed = build().to(device)
    resumed.load_state_dict(state["model"])
    resumed_optimizer = torch.optim.Adam(resumed.parameters(), lr=0.5)
    resumed_optimizer.load_state_dict(state["optimizer"])
    after = train(model, optimizer, 2, seed=2)
    assert train(resumed, resumed_optimizer, 2, seed=2) == after
    losses += after

    # To the host and back.
    same = torch.load(folder / "checkpoint.pt", weights_only=True)["model"]
    through_the_host(folder, same)

    # safetensors
    onto = build().to(device)
    load_model(onto, folder / "model.safetensors", device=str(device))
    loaded = load_file(folder / "x.safetensors", device=str(device))
    assert loaded["x"].device.type == device.type
    for name, value in onto.state_dict().items():
        assert torch.equal(value, same[name]), name

onto.eval()
with torch.no_grad():
    outputs = onto(torch.linspace(-1, 1, 60).view(6, 2, 5).to(device))
print("losses", losses)
