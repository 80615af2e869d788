"""Adaptive computation time: a recurrent cell ponders each input until its halting probabilities sum to nearly one."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.programs.dynamic.program import Program, generator

MOST_STEPS, EPSILON, PENALTY = 8, 0.01, 0.01


class ACTCell(nn.Module):
    def __init__(self, inside: int, width: int) -> None:
        super().__init__()
        self.cell = nn.GRUCell(inside + 1, width)
        self.halt = nn.Linear(width, 1)

    def forward(self, x: torch.Tensor, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The new state and the ponder cost of the batch."""
        total = torch.zeros(len(x), 1)
        averaged = torch.zeros_like(state)
        updates = torch.zeros(len(x), 1)
        remainder = torch.zeros(len(x), 1)
        step = 0
        while step < MOST_STEPS and bool((total < 1 - EPSILON).any()):
            flag = torch.full((len(x), 1), float(step == 0))
            state = self.cell(torch.cat([x, flag], 1), state)
            p = torch.sigmoid(self.halt(state))
            running = (total < 1 - EPSILON).float()
            last = ((total + p >= 1 - EPSILON).float()) * running
            if step == MOST_STEPS - 1:
                last = running
            weight = last * (1 - total) + (running - last) * p
            averaged = averaged + weight * state
            remainder = remainder + last * (1 - total)
            total = total + weight
            updates = updates + running
            step += 1
        return averaged, (updates + remainder).mean()


class ACTNet(nn.Module):
    def __init__(self, features: int = 16, width: int = 128) -> None:
        super().__init__()
        self.act = ACTCell(features, width)
        self.out = nn.Linear(width, 2)

    def forward(self, sequence: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        state = torch.zeros(sequence.shape[0], self.act.cell.hidden_size)
        ponder = torch.zeros(())
        for t in range(sequence.shape[1]):
            state, cost = self.act(sequence[:, t], state)
            ponder = ponder + cost
        return self.out(state), ponder


def parity(i: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Sequences of vectors of -1, 0 and 1; the class is the parity of the ones. Hard batches have few zeros."""
    g = generator(i)
    density = 0.1 + 0.9 * torch.rand(1, generator=g)
    x = torch.randint(0, 2, (8, 3, 16), generator=g).float() * 2 - 1
    x = x * (torch.rand(8, 3, 16, generator=g) < density)
    return x, ((x == 1).sum((1, 2)) % 2).long()


def program() -> Program:
    model = ACTNet()
    with torch.no_grad():
        model.act.halt.weight.mul_(12)
        model.act.halt.bias.zero_()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)

    def train(pair: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        x, y = pair
        optimizer.zero_grad()
        logits, ponder = model(x)
        loss = F.cross_entropy(logits, y) + PENALTY * ponder
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Program(model, train, parity, trains=True)
