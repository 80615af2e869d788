"""SkipNet with a recurrent gate: one LSTM sees the pooled features of each block's input and decides whether it runs."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.swa_utils import update_bn

from tests.programs.dynamic.program import Program, generator


def conv_bn(inside: int, outside: int, stride: int = 1, kernel: int = 3) -> nn.Sequential:
    conv = nn.Conv2d(inside, outside, kernel, stride, kernel // 2, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outside))


class Bottleneck(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.reduce, self.middle = conv_bn(width, width // 2, kernel=1), conv_bn(width // 2, width // 2)
        self.expand = conv_bn(width // 2, width, kernel=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.expand(F.relu(self.middle(F.relu(self.reduce(x)))))


class RNNGate(nn.Module):
    def __init__(self, features: int = 10, hidden: int = 10) -> None:
        super().__init__()
        self.rnn = nn.LSTM(features, hidden, num_layers=1)
        self.proj = nn.Linear(hidden, 1)
        self.state: tuple[torch.Tensor, torch.Tensor] | None = None

    def start(self, batch: int) -> None:
        zeros = torch.zeros(1, batch, self.rnn.hidden_size)
        self.state = (zeros, zeros.clone())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out, self.state = self.rnn(x.unsqueeze(0), self.state)
        return self.proj(out.squeeze(0))


class RecurrentSkipNet(nn.Module):
    def __init__(self, widths: tuple[int, ...] = (32, 64, 96), blocks: int = 4) -> None:
        super().__init__()
        inside = (3, *widths[:-1])
        self.entries = nn.ModuleList(conv_bn(a, b, 1 if a == 3 else 2) for a, b in zip(inside, widths, strict=True))
        self.stages = nn.ModuleList(nn.ModuleList(Bottleneck(width) for _ in range(blocks)) for width in widths)
        self.pools = nn.ModuleList(nn.Linear(width, 10) for width in widths)
        self.norms = nn.ModuleList(nn.BatchNorm1d(10) for _ in widths)
        self.control = RNNGate()
        self.fc = nn.Linear(widths[-1], 10)
        self.executed = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.control.start(len(x))
        for stage, (entry, blocks) in enumerate(zip(self.entries, self.stages, strict=True)):
            x = F.relu(entry(x))
            for block in blocks:
                pooled = self.norms[stage](self.pools[stage](x.mean((2, 3))))
                score = torch.sigmoid(self.control(pooled))
                if self.training:
                    x = F.relu(x + score[:, :, None, None] * block(x))
                elif score.item() > 0.5:
                    x = F.relu(x + block(x))
                    self.executed += 1
        return self.fc(x.mean((2, 3)))


def picture(i: int) -> torch.Tensor:
    g = generator(i)
    coarse = F.interpolate(torch.randn(1, 3, 4, 4, generator=g), size=32, mode="bilinear")
    return coarse * (0.5 + torch.rand(1, generator=g)) + torch.randn(1, 3, 1, 1, generator=g)


def program() -> Program:
    model = RecurrentSkipNet()
    with torch.no_grad():
        for weights in (model.control.rnn.weight_ih_l0, model.control.rnn.weight_hh_l0, model.control.proj.weight):
            weights.mul_(3)
        model.control.proj.bias.zero_()
        data = torch.cat([picture(-1 - i) for i in range(48)])
        update_bn([data], model)
    model.eval()

    @torch.no_grad()
    def classify(x: torch.Tensor) -> torch.Tensor:
        return model(x)

    return Program(model, classify, picture)
