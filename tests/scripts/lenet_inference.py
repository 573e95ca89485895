# SPDX-License-Identifier: Apache-2.0
"""LeNet of sigmoid and average pooling: scores of handwritten digits, batch by batch."""

import os

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = torch.device(os.environ.get("DEVICE", "npu"))
IMAGES = int(os.environ.get("IMAGES", "64"))


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 6, kernel_size=5, padding=2),
            nn.Sigmoid(),
            nn.AvgPool2d(kernel_size=2, stride=2),
            nn.Conv2d(6, 16, kernel_size=5),
            nn.Sigmoid(),
            nn.AvgPool2d(kernel_size=2, stride=2),
        )
        self.classifier = nn.Sequential(
            nn.Flatten(),
            nn.Linear(16 * 5 * 5, 120),
            nn.Sigmoid(),
            nn.Linear(120, 84),
            nn.Sigmoid(),
            nn.Linear(84, 10),
        )

    def forward(self, x):
        return self.classifier(self.features(x))


torch.manual_seed(0)
digits = load_digits()
images = torch.tensor(digits.images[:IMAGES, None] / 16, dtype=torch.float32)
images = nn.functional.interpolate(images, (28, 28), mode="bilinear")
labels = torch.tensor(digits.target[:IMAGES])
loader = DataLoader(TensorDataset(images, labels), batch_size=32)

model = LeNet().to(device).eval()
outputs, predictions, correct = [], [], 0
with torch.inference_mode():
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        scores = model(x)
        outputs.append(scores.softmax(dim=1))
        _, predicted = scores.max(1)
        predictions += predicted.tolist()
        correct += (predicted == y).sum().item()
outputs = torch.cat(outputs)
print(f"accuracy {correct}/{len(labels)}, {outputs.shape}")
