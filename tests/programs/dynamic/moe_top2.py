"""Trains a sparse mixture of two experts a token, with a loss for balance; an expert that no token chose is skipped."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.programs.dynamic.program import Program, generator

WIDTH, EXPERTS, CLASSES = 64, 8, 10


class Expert(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w1, self.w2, self.w3 = nn.Linear(WIDTH, 128), nn.Linear(128, WIDTH), nn.Linear(WIDTH, 128)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class SparseMoE(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(WIDTH, EXPERTS, bias=False)
        self.experts = nn.ModuleList(Expert() for _ in range(EXPERTS))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        probabilities = F.softmax(self.gate(x), dim=-1)
        weights, selected = torch.topk(probabilities, 2, dim=-1)
        weights = weights / weights.sum(-1, keepdim=True)
        output = torch.zeros_like(x)
        usage = torch.zeros(EXPERTS)
        for number, expert in enumerate(self.experts):
            rows, which = torch.where(selected == number)
            if rows.numel() == 0:
                continue
            usage[number] = rows.numel() / len(x)
            output = output.index_add(0, rows, weights[rows, which].unsqueeze(1) * expert(x.index_select(0, rows)))
        balance = EXPERTS * (usage * probabilities.mean(0)).sum()
        return output, balance


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Linear(32, WIDTH)
        self.layers = nn.ModuleList(SparseMoE() for _ in range(2))
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))
        self.leave = nn.Linear(WIDTH, CLASSES)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.enter(x)
        balance = torch.zeros(())
        for norm, layer in zip(self.norms, self.layers, strict=True):
            added, loss = layer(norm(x))
            x, balance = x + added, balance + loss
        return self.leave(x), balance


def batch(i: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Samples around one to four centres."""
    g = generator(i)
    centres = 1.5 * torch.randn(1 + i % 4, 32, generator=g)
    x = centres[torch.randint(len(centres), (64,), generator=g)] + 0.1 * torch.randn(64, 32, generator=g)
    return x, torch.randint(CLASSES, (64,), generator=g)


def program() -> Program:
    model = Classifier()
    with torch.no_grad():
        for layer in model.layers:
            layer.gate.weight.mul_(3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def train(pair: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        x, y = pair
        optimizer.zero_grad()
        logits, balance = model(x)
        loss = F.cross_entropy(logits, y) + 0.01 * balance
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Program(model, train, batch, trains=True)
