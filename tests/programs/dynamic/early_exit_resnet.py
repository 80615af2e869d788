"""A ResNet that stops when several heads in a row agree on the class (patience), for a small batch at a time."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.swa_utils import update_bn

from tests.programs.dynamic.program import Program, generator


class BasicBlock(nn.Module):
    def __init__(self, inside: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inside, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = None
        if stride != 1 or inside != width:
            self.downsample = nn.Sequential(nn.Conv2d(inside, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        identity = x
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        if self.downsample is not None:
            identity = self.downsample(x)
        return F.relu(out + identity)


class PatientResNet(nn.Module):
    def __init__(self, classes: int = 4, patience: int = 2) -> None:
        super().__init__()
        self.patience = patience
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU())
        shapes = [(16, 16, 1), (16, 16, 1), (16, 32, 2), (32, 32, 1), (32, 64, 2), (64, 64, 1)]
        self.blocks = nn.ModuleList(BasicBlock(*shape) for shape in shapes)
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for _, width, _ in shapes)
        self.heads = nn.ModuleList(nn.Linear(width, classes) for _, width, _ in shapes)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor | int]:
        x = self.stem(x)
        agreed, last = 0, None
        for depth, block in enumerate(self.blocks):
            x = block(x)
            pooled = self.norms[depth](x.mean((2, 3)))
            logits = self.heads[depth](pooled)
            if self.training:
                continue
            classes = logits.argmax(1)
            if last is not None and torch.equal(classes, last):
                agreed += 1
            else:
                agreed = 0
            if agreed == self.patience:
                break
            last = classes
        return {"logits": logits, "blocks": depth + 1}


def pictures(i: int) -> torch.Tensor:
    g = generator(i)
    coarse = torch.randn(2, 3, 3, 3, generator=g) * 2
    return F.interpolate(coarse, size=32, mode="nearest") + 0.5 * torch.randn(2, 3, 32, 32, generator=g)


def program() -> Program:
    model = PatientResNet()
    with torch.no_grad():
        data = torch.cat([pictures(-1 - i) for i in range(24)])
        update_bn([data], model)
        for head in model.heads:  # some classes are frequent
            head.bias.copy_(torch.tensor([1.3, 0.4, -0.6, -1.0]))
    model.eval()

    @torch.no_grad()
    def classify(x: torch.Tensor) -> dict[str, torch.Tensor | int]:
        return model(x)

    return Program(model, classify, pictures)
