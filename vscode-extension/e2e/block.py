"""A small model that trains: its kernels for a GPU take seconds."""

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(32, 64)
        self.norm = nn.LayerNorm(64)

    def widen(self, x: torch.Tensor) -> torch.Tensor:
        h = self.up(x)
        return F.gelu(h)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.widen(x)
        return self.norm(h)


if __name__ == "__main__":
    torch.manual_seed(0)
    block = Block()
    optimizer = torch.optim.AdamW(block.parameters())
    for _ in range(10):
        optimizer.zero_grad()
        loss = block(torch.randn(16, 32)).square().mean()
        loss.backward()
        optimizer.step()
