# SPDX-License-Identifier: Apache-2.0
"""ResNet-18 on images of 64×64: training steps, then evaluation with the running statistics."""

import os

import torch
from torch import nn

device = torch.device(os.environ.get("DEVICE", "npu"))
WIDTH = int(os.environ.get("WIDTH", "16"))
SIDE = int(os.environ.get("SIDE", "64"))
STEPS = int(os.environ.get("STEPS", "1"))


class BasicBlock(nn.Module):
    def __init__(self, inplanes, planes, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(inplanes, planes, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(planes, planes, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.downsample = None
        if stride != 1 or inplanes != planes:
            self.downsample = nn.Sequential(
                nn.Conv2d(inplanes, planes, 1, stride, bias=False), nn.BatchNorm2d(planes)
            )

    def forward(self, x):
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        return self.relu(out)


class ResNet18(nn.Module):
    def __init__(self, width=64, num_classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        planes = [width, width, 2 * width, 4 * width, 8 * width]
        self.layers = nn.Sequential(
            *(
                nn.Sequential(
                    BasicBlock(planes[i], planes[i + 1], stride=1 if i == 0 else 2),
                    BasicBlock(planes[i + 1], planes[i + 1]),
                )
                for i in range(4)
            )
        )
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(8 * width, num_classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.avgpool(self.layers(x))
        return self.fc(torch.flatten(x, 1))


torch.manual_seed(0)
model = ResNet18(WIDTH).to(device)
optimizer = torch.optim.SGD(
    model.parameters(), lr=0.02, momentum=0.9, weight_decay=5e-4, nesterov=True
)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=STEPS)
criterion = nn.CrossEntropyLoss()
images = torch.randn(4, 3, SIDE, SIDE)
labels = torch.randint(0, 10, (4,))

losses = []
model.train()
for _ in range(STEPS):
    optimizer.zero_grad(set_to_none=True)
    loss = criterion(model(images.to(device)), labels.to(device))
    loss.backward()
    optimizer.step()
    scheduler.step()
    losses.append(loss.item())
print("losses", losses)

model.eval()
with torch.no_grad():
    outputs = model(images.to(device))
    values, best = outputs.topk(3, dim=1)
print("top 3 of the first image", best[0].tolist())
