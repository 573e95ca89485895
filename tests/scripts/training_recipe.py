# SPDX-License-Identifier: Apache-2.0
"""What long training runs use: accumulation, checkpointing, autocast, averages, schedules."""

import copy
import os

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.checkpoint import checkpoint

device = os.environ.get("DEVICE", "npu")
STEPS = int(os.environ.get("STEPS", "3"))
ACCUMULATE = 2


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(10, 16)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(16), nn.Linear(16, 32), nn.SiLU(), nn.Linear(32, 16))
            for _ in range(2)
        )
        self.last = nn.Linear(16, 3)

    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = x + checkpoint(block, x, use_reentrant=False)
        return self.last(x)


torch.manual_seed(0)
model = Model().to(device)
ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
own_average = copy.deepcopy(model).requires_grad_(False)
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=STEPS + 1)
inputs = torch.randn(STEPS * ACCUMULATE, 8, 10)
targets = torch.randint(0, 3, (STEPS * ACCUMULATE, 8))

losses, norms = [], []
for step in range(STEPS):
    optimizer.zero_grad(set_to_none=True)
    total = 0.0
    for part in range(ACCUMULATE):
        x = inputs[step * ACCUMULATE + part].to(device)
        y = targets[step * ACCUMULATE + part].to(device)
        loss = nn.functional.cross_entropy(model(x), y) / ACCUMULATE
        loss.backward()
        total += loss.detach()
    norms.append(nn.utils.clip_grad_norm_(model.parameters(), 0.5).item())
    optimizer.step()
    scheduler.step()
    ema.update_parameters(model)
    with torch.no_grad():
        for average, parameter in zip(own_average.parameters(), model.parameters()):
            average.mul_(0.9).add_(parameter, alpha=0.1)
    losses.append(total.item())
print("losses", losses, "norms", norms)

half = []
for step in range(STEPS):
    optimizer.zero_grad()
    with torch.autocast(device_type=device, dtype=torch.bfloat16):
        scores = model(inputs[step].to(device))
        loss = nn.functional.cross_entropy(scores, targets[step].to(device))
    loss.backward()
    nn.utils.clip_grad_value_(model.parameters(), 0.1)
    optimizer.step()
    half.append(loss.item())
    assert all(p.grad.dtype == torch.float32 for p in model.parameters())
print("bfloat16", half)

with torch.no_grad():
    outputs = torch.stack([m(inputs[0].to(device)) for m in (ema.eval(), own_average.eval())])
losses += norms
