"""Learns a picture: a network maps a place to a colour. The whole training step is one function.

python train.py                    # 12,000 steps, about 20 seconds on two CPU cores
"""

import argparse
import copy
import math

import torch
import torch.nn.functional as F
from torch import nn


class Picture(nn.Module):
    """Colours of places in a square, with features of several frequencies (Tancik et al. 2020)."""

    def __init__(self, width=128, frequencies=6):
        super().__init__()
        self.register_buffer("scales", math.pi * 2.0 ** torch.arange(frequencies))
        self.layers = nn.ModuleList([nn.Linear(4 * frequencies, width), nn.Linear(width, width), nn.Linear(width, width)])
        self.head = nn.Linear(width, 3)

    def forward(self, places):
        angles = (places[..., None] * self.scales).flatten(1)
        x = torch.cat([angles.sin(), angles.cos()], 1)
        for layer in self.layers:
            x = F.silu(layer(x))
        return self.head(x).sigmoid()


def colours(places):
    """The picture to learn: rings, a slope and stripes."""
    x, y = places.unbind(1)
    rings = torch.sin(12 * (x * x + y * y).sqrt()).abs()
    return torch.stack([rings, (x + y) / 2 * 0.5 + 0.5, (torch.sin(9 * x + 4 * y) > 0).float()], 1)


class Training:
    """A model, an optimizer with a schedule, and a running average of the weights."""

    def __init__(self, device):
        self.model = Picture().to(device)
        self.average = copy.deepcopy(self.model)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-3)
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, 20_000)
        self.steps = 0

    def train_step(self, places, target):
        self.optimizer.zero_grad()
        loss = F.mse_loss(self.model(places), target)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.scheduler.step()
        with torch.no_grad():
            for mean, parameter in zip(self.average.parameters(), self.model.parameters(), strict=True):
                mean.lerp_(parameter, 0.01)
        self.steps += 1
        return loss.item()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=12_000)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    training = Training(args.device)
    shown = max(1, args.steps // 6)
    for step in range(args.steps):
        places = torch.rand(args.batch_size, 2, device=args.device) * 2 - 1
        loss = training.train_step(places, colours(places))
        if step % shown == 0 or step == args.steps - 1:
            print(f"step {step:5}  loss {loss:.4f}")
    places = torch.rand(4096, 2, device=args.device) * 2 - 1
    with torch.no_grad():
        error = F.mse_loss(training.average(places), colours(places)).item()
    print(f"averaged weights after {training.steps} steps: error {error:.4f}")


if __name__ == "__main__":
    main()
