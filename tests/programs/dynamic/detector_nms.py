"""An anchor-based detector whose boxes pass through non-maximum suppression in NumPy; pictures may show nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.swa_utils import update_bn

from tests.programs.dynamic.program import Program, generator

SIZE, STRIDE, CLASSES = 96, 8, 3


def nms(boxes: np.ndarray, scores: np.ndarray, threshold: float = 0.3) -> list[int]:
    x1, y1, x2, y2 = boxes.T
    areas = (x2 - x1) * (y2 - y1) + 1e-6
    order = scores.argsort(kind="stable")[::-1]
    keep = []
    while order.size > 0:
        i = int(order[0])
        keep.append(i)
        rest = order[1:]
        width = np.maximum(0.0, np.minimum(x2[i], x2[rest]) - np.maximum(x1[i], x1[rest]))
        height = np.maximum(0.0, np.minimum(y2[i], y2[rest]) - np.maximum(y1[i], y1[rest]))
        overlap = width * height
        order = rest[overlap / (areas[i] + areas[rest] - overlap) <= threshold]
    return keep


class Detector(nn.Module):
    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(3, width, 3, 2, 1), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, 2, 1), nn.BatchNorm2d(2 * width), nn.ReLU(),
            nn.Conv2d(2 * width, 2 * width, 3, 2, 1), nn.BatchNorm2d(2 * width), nn.ReLU(),
            nn.Conv2d(2 * width, 2 * width, 3, 1, 1), nn.BatchNorm2d(2 * width), nn.ReLU(),
        )  # fmt: skip
        self.classify = nn.Conv2d(2 * width, CLASSES, 1)
        self.regress = nn.Conv2d(2 * width, 4, 1)
        self.score_threshold = 0.5
        centres = (torch.arange(SIZE // STRIDE) + 0.5) * STRIDE
        y, x = torch.meshgrid(centres, centres, indexing="ij")
        self.register_buffer("centres", torch.stack([x, y], -1).reshape(-1, 2))

    def forward(self, image: torch.Tensor) -> list[tuple[int, float, list[float]]]:
        features = self.backbone(image)
        scores = torch.sigmoid(self.classify(features))[0].flatten(1)
        deltas = self.regress(features)[0].flatten(1).T
        centre = self.centres + deltas[:, :2] * STRIDE
        size = F.softplus(deltas[:, 2:]) * 2 * STRIDE
        boxes = torch.cat([centre - size / 2, centre + size / 2], 1).clamp(0, SIZE)
        detections = []
        for label in range(CLASSES):
            found = scores[label] > self.score_threshold
            if not found.any():
                continue
            own_boxes, own_scores = boxes[found].cpu().numpy(), scores[label][found].cpu().numpy()
            for i in nms(own_boxes, own_scores):
                detections.append((label, float(own_scores[i]), own_boxes[i].tolist()))
        return detections


def image(i: int) -> torch.Tensor:
    g = generator(i)
    picture = 0.2 * torch.randn(1, 3, SIZE, SIZE, generator=g)
    for _ in range(i % 4):  # objects
        x, y = torch.randint(0, SIZE - 32, (2,), generator=g).tolist()
        picture[:, :, y : y + 32, x : x + 32] += 2 * torch.randn(1, 3, 1, 1, generator=g)
    return picture


def program() -> Program:
    model = Detector()
    with torch.no_grad():
        update_bn([torch.cat([image(-1 - i) for i in range(16)])], model.backbone)
        model.eval()
        model.classify.weight.mul_(2)
        scores = torch.sigmoid(model.classify(model.backbone(torch.cat([image(-1 - i) for i in range(16)]))))
        model.score_threshold = scores.flatten(1).quantile(0.98).item()

    @torch.no_grad()
    def detect(x: torch.Tensor) -> Any:
        return model(x)

    return Program(model, detect, image)
