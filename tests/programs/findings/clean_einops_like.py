"""Shapes computed with Python arithmetic, unpacked, asserted on and printed into an error that is not raised."""

import torch
from torch import nn


class Patches(nn.Module):
    def __init__(self, size: int = 2) -> None:
        super().__init__()
        self.size = size
        self.layer = nn.Linear(3 * size * size, 5)

    def forward(self, image):
        *batch, c, h, w = image.shape
        p = self.size
        if h % p or w % p:
            raise ValueError(f"{h}x{w} is not a multiple of {p}")
        assert c == 3, f"expected 3 channels, got {c}"
        image = image.reshape(*batch, c, h // p, p, w // p, p)
        patches = torch.einsum("bchpwq->bhwpqc", image).reshape(*batch, (h // p) * (w // p), -1)
        return self.layer(patches), max(h, w), [h, w][::-1]


torch.manual_seed(0)
net = Patches()
for _ in range(2):
    net(torch.randn(2, 3, 4, 6))
