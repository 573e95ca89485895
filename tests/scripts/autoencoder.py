# SPDX-License-Identifier: Apache-2.0
"""A convolutional autoencoder with transposed convolutions, and a variational head."""

import os

import torch
from torch import nn
from torch.nn import functional as F

device = torch.device(os.environ.get("DEVICE", "npu"))
STEPS = int(os.environ.get("STEPS", "2"))


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 4, 3, stride=2, padding=1),
            nn.LeakyReLU(0.1),
            nn.Conv2d(4, 8, 3, stride=2, padding=1),
            nn.ELU(),
            nn.Flatten(),
        )
        self.mean = nn.Linear(8 * 4 * 4, 6)
        self.log_variance = nn.Linear(8 * 4 * 4, 6)
        self.expand = nn.Linear(6, 8 * 4 * 4)
        self.decoder = nn.Sequential(
            nn.ConvTranspose2d(8, 4, 3, stride=2, padding=1, output_padding=1),
            nn.ReLU(),
            nn.Upsample(scale_factor=2, mode="nearest"),
            nn.Conv2d(4, 1, 3, padding=1),
            nn.Sigmoid(),
        )

    def forward(self, x, noise):
        hidden = self.encoder(x)
        mean, log_variance = self.mean(hidden), self.log_variance(hidden)
        code = mean + noise * torch.exp(0.5 * log_variance)
        expanded = self.expand(code).view(-1, 8, 4, 4)
        return self.decoder(expanded), mean, log_variance


torch.manual_seed(0)
model = Autoencoder().to(device)
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
images = torch.rand(4, 1, 16, 16)
noise = torch.randn(STEPS, 4, 6)

losses = []
for step in range(STEPS):
    x = images.to(device)
    made, mean, log_variance = model(x, noise[step].to(device))
    rebuilt = F.binary_cross_entropy(made, x, reduction="sum")
    divergence = -0.5 * torch.sum(1 + log_variance - mean.pow(2) - log_variance.exp())
    loss = (rebuilt + divergence) / len(x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("losses", losses)
model.eval()
with torch.no_grad():
    outputs, _, _ = model(images.to(device), torch.zeros(4, 6, device=device))
    error = F.mse_loss(outputs, images.to(device)).item()
    losses.append(error)
