"""A small convolutional network with everything usual in it."""

import torch
from torch import nn


class ConvNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.MaxPool2d(2),
            nn.Conv2d(4, 8, 3, padding=1), nn.GELU(), nn.AdaptiveAvgPool2d(1),
        )
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        return self.head(torch.flatten(self.features(x), 1))


torch.manual_seed(0)
net = ConvNet()
for _ in range(2):
    net(torch.randn(2, 3, 8, 8)).sum().backward()
