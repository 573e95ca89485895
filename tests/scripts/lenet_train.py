# SPDX-License-Identifier: Apache-2.0
"""The classifier of PyTorch's tutorial: relu, max pooling, batches of four, workers, SGD."""

import os

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset

device = torch.device(os.environ.get("DEVICE", "npu"))
IMAGES = int(os.environ.get("IMAGES", "48"))


class Digits(Dataset):
    def __init__(self, first, last):
        found = load_digits()
        self.images = found.images[first:last]
        self.labels = found.target[first:last]

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, idx):
        image = torch.tensor(self.images[idx], dtype=torch.float32) / 8 - 1
        return F.interpolate(image[None, None], (28, 28), mode="bilinear")[0], self.labels[idx]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5)
        self.pool = nn.MaxPool2d(2, 2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * 4 * 4, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, 10)

    def forward(self, x):
        x = self.pool(F.relu(self.conv1(x)))
        x = self.pool(F.relu(self.conv2(x)))
        x = torch.flatten(x, 1)
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        return self.fc3(x)


torch.manual_seed(1)
trainloader = DataLoader(
    Digits(0, IMAGES), batch_size=4, shuffle=True, num_workers=2, pin_memory=True
)
testloader = DataLoader(Digits(1437, 1437 + IMAGES), batch_size=4, num_workers=2)

net = Net()
net.to(device)
criterion = nn.CrossEntropyLoss()
optimizer = optim.SGD(net.parameters(), lr=0.01, momentum=0.9)

losses = []
for epoch in range(1):
    running_loss = 0.0
    for i, data in enumerate(trainloader, 0):
        inputs, labels = data[0].to(device, non_blocking=True), data[1].to(device)
        optimizer.zero_grad()
        outputs = net(inputs)
        loss = criterion(outputs, labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        running_loss += loss.item()
        if i % 4 == 3:
            print(f"[{epoch + 1}, {i + 1:5d}] loss: {running_loss / 4:.3f}")
            running_loss = 0.0

correct = total = 0
with torch.no_grad():
    for inputs, labels in testloader:
        outputs = net(inputs.to(device))
        _, predicted = torch.max(outputs.data, 1)
        total += labels.size(0)
        correct += (predicted == labels.to(device)).sum().item()
print(f"Accuracy of the network on the {total} test images: {100 * correct // total} %")
