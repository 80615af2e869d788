"""DCGAN with two optimizers: when one of the two nets is too far ahead, its update is left out."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.programs.dynamic.program import Program, generator

NOISE, WIDTH = 32, 16


class Generator(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(NOISE, 4 * WIDTH, 4, 1, 0, bias=False), nn.BatchNorm2d(4 * WIDTH), nn.ReLU(True),
            nn.ConvTranspose2d(4 * WIDTH, 2 * WIDTH, 4, 2, 1, bias=False), nn.BatchNorm2d(2 * WIDTH), nn.ReLU(True),
            nn.ConvTranspose2d(2 * WIDTH, 3, 4, 2, 1, bias=False), nn.Tanh(),
        )  # fmt: skip

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        return self.main(z)


class Discriminator(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(3, 2 * WIDTH, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, True),
            nn.Conv2d(2 * WIDTH, 4 * WIDTH, 4, 2, 1, bias=False), nn.BatchNorm2d(4 * WIDTH), nn.LeakyReLU(0.2, True),
            nn.Conv2d(4 * WIDTH, 1, 4, 1, 0, bias=False), nn.Flatten(0),
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.main(x)


def weights_init(m: nn.Module) -> None:
    if isinstance(m, (nn.Conv2d, nn.ConvTranspose2d)):
        nn.init.normal_(m.weight, 0.0, 0.04)
    elif isinstance(m, nn.BatchNorm2d):
        nn.init.normal_(m.weight, 1.0, 0.02)
        nn.init.zeros_(m.bias)


def batch(i: int) -> torch.Tensor:
    g = generator(i)
    coarse = torch.randn(8, 3, 4, 4, generator=g)
    return torch.tanh(F.interpolate(coarse, size=16, mode="bilinear") * 2)


def program() -> Program:
    nets = nn.ModuleDict({"G": Generator(), "D": Discriminator()})
    nets.apply(weights_init)
    net_g, net_d = nets["G"], nets["D"]
    adam_g = torch.optim.Adam(net_g.parameters(), lr=1e-3, betas=(0.5, 0.999))
    adam_d = torch.optim.Adam(net_d.parameters(), lr=1e-3, betas=(0.5, 0.999))
    criterion = nn.BCEWithLogitsLoss()

    def train(real: torch.Tensor) -> tuple[float, float]:
        ones, zeros = torch.ones(len(real)), torch.zeros(len(real))
        net_d.zero_grad()
        fake = net_g(torch.randn(len(real), NOISE, 1, 1))
        loss_d = criterion(net_d(real), ones) + criterion(net_d(fake.detach()), zeros)
        if loss_d.item() > 1.2:
            loss_d.backward()
            adam_d.step()
        net_g.zero_grad()
        loss_g = criterion(net_d(fake), ones)
        if loss_g.item() > 0.9:
            loss_g.backward()
            adam_g.step()
        return loss_d.item(), loss_g.item()

    return Program(nets, train, batch, trains=True, regions=(net_g, net_d))
