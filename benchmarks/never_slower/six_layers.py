"""Six linear layers with layer norms, trained by Adam: a short step of many operations, of which a compiler makes few."""

from __future__ import annotations

import argparse

import torch
from torch import nn


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=30_000)
    steps = parser.parse_args().steps
    torch.manual_seed(0)
    layers = [module for _ in range(6) for module in (nn.Linear(64, 64), nn.LayerNorm(64), nn.GELU())]
    model = nn.Sequential(*layers, nn.Linear(64, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loss_function = nn.CrossEntropyLoss()
    inputs, labels = torch.randn(512, 64), torch.randint(0, 10, (512,))
    for step in range(steps):
        start = step * 32 % 512
        x, y = inputs[start : start + 32], labels[start : start + 32]
        optimizer.zero_grad()
        loss = loss_function(model(x), y)
        loss.backward()
        optimizer.step()
        if step % 500 == 0:
            print(step, loss.item())


if __name__ == "__main__":
    main()
