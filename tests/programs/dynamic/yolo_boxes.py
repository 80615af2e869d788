"""A YOLO-like detector of two scales: predictions are read out as Python lists, then filtered and merged in Python."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.optim.swa_utils import update_bn

from tests.programs.dynamic.program import Program, generator

CLASSES = 4
ANCHORS = {16: ((20.0, 20.0), (40.0, 24.0)), 8: ((10.0, 12.0), (16.0, 8.0))}

Box = list[float]  # x1, y1, x2, y2, confidence, class


def conv(inside: int, outside: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(inside, outside, 3, stride, 1, bias=False), nn.BatchNorm2d(outside), nn.LeakyReLU(0.1))


def iou(a: Box, b: Box) -> float:
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0.0
    shared = width * height
    return shared / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - shared)


class YoloHead(nn.Module):
    def __init__(self, inside: int, stride: int) -> None:
        super().__init__()
        self.stride, self.anchors = stride, ANCHORS[stride]
        self.predict = nn.Conv2d(inside, len(self.anchors) * (5 + CLASSES), 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, columns = x.shape[2:]
        out = self.predict(x).view(len(self.anchors), 5 + CLASSES, rows, columns).permute(0, 2, 3, 1)
        y, x = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
        centre = (torch.sigmoid(out[..., :2]) + torch.stack([x, y], -1)) * self.stride
        size = torch.exp(out[..., 2:4].clamp(max=2)) * torch.tensor(self.anchors)[:, None, None]
        rest = torch.sigmoid(out[..., 4:])
        return torch.cat([centre - size / 2, centre + size / 2, rest], -1).view(-1, 5 + CLASSES)


class Yolo(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.backbone = nn.Sequential(conv(3, 16, 2), conv(16, 32, 2), conv(32, 64, 2), conv(64, 64))
        self.deeper = nn.Sequential(conv(64, 96, 2), conv(96, 96))
        self.small, self.large = YoloHead(64, 8), YoloHead(96, 16)
        self.threshold = 0.5

    def predictions(self, x: torch.Tensor) -> torch.Tensor:
        features = self.backbone(x)
        return torch.cat([self.large(self.deeper(features)), self.small(features)])

    def forward(self, x: torch.Tensor) -> list[Box]:
        boxes: list[Box] = []
        for row in self.predictions(x).tolist():
            confidence = row[4] * max(row[5:])
            if confidence > self.threshold:
                boxes.append([*row[:4], confidence, row[5:].index(max(row[5:]))])
        boxes.sort(key=lambda box: -box[4])
        kept: list[Box] = []
        for box in boxes:
            if all(other[5] != box[5] or iou(other, box) < 0.45 for other in kept):
                kept.append(box)
        return kept


def image(i: int) -> torch.Tensor:
    g = generator(i)
    picture = 0.3 * torch.randn(1, 3, 96, 96, generator=g)
    for _ in range(i % 3):
        x, y = torch.randint(0, 64, (2,), generator=g).tolist()
        picture[:, :, y : y + 24, x : x + 32] += 2 * torch.randn(1, 3, 1, 1, generator=g)
    return picture


def program() -> Program:
    model = Yolo()
    with torch.no_grad():
        data = torch.cat([image(-1 - i) for i in range(16)])
        update_bn([data], nn.Sequential(model.backbone, model.deeper))
        model.eval()
        model.small.predict.weight.mul_(2)
        model.large.predict.weight.mul_(2)
        found = torch.cat([model.predictions(picture[None]) for picture in data])
        model.threshold = (found[:, 4] * found[:, 5:].amax(1)).quantile(0.96).item()

    @torch.no_grad()
    def detect(x: torch.Tensor) -> Any:
        return model(x)

    return Program(model, detect, image)
