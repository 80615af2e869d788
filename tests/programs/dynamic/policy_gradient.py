"""REINFORCE: an episode is rolled out in an environment that runs in eager mode, then the policy learns from it."""

from __future__ import annotations

import random

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Categorical

from tests.programs.dynamic.program import Program

SIZE, LONGEST, GAMMA = 5, 16, 0.95
MOVES = ((0, 1), (0, -1), (1, 0), (-1, 0))


class GridWorld:
    """Walk from one cell to a goal; some cells are pits."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        cells = [(row, column) for row in range(SIZE) for column in range(SIZE)]
        self.position, self.goal, *pits = rng.sample(cells, 5)
        self.pits = set(pits)

    def observe(self) -> torch.Tensor:
        planes = torch.zeros(3, SIZE, SIZE)
        planes[0][self.position] = 1
        planes[1][self.goal] = 1
        for pit in self.pits:
            planes[2][pit] = 1
        return planes.flatten()

    def step(self, action: int) -> tuple[float, bool]:
        row, column = (a + b for a, b in zip(self.position, MOVES[action], strict=True))
        if not (0 <= row < SIZE and 0 <= column < SIZE):
            return -0.2, False
        self.position = (row, column)
        if self.position == self.goal:
            return 1.0, True
        if self.position in self.pits:
            return -1.0, True
        return -0.02, False


class Policy(nn.Module):
    def __init__(self, width: int = 128) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3 * SIZE * SIZE, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.actor, self.critic = nn.Linear(width, len(MOVES)), nn.Linear(width, 1)

    def forward(self, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.body(state)
        return F.softmax(self.actor(x), dim=-1), self.critic(x)


def program() -> Program:
    policy = Policy()
    optimizer = torch.optim.Adam(policy.parameters(), lr=3e-3)

    def episode(seed: int) -> tuple[torch.Tensor, float]:
        world = GridWorld(seed)
        log_probs, values, rewards = [], [], []
        done = False
        while not done and len(rewards) < LONGEST:
            probabilities, value = policy(world.observe())
            distribution = Categorical(probabilities)
            action = distribution.sample()
            reward, done = world.step(action.item())
            log_probs.append(distribution.log_prob(action))
            values.append(value.squeeze(0))
            rewards.append(reward)
        returns, future = [], 0.0
        for reward in reversed(rewards):
            future = reward + GAMMA * future
            returns.insert(0, future)
        target = torch.tensor(returns)
        value = torch.stack(values)
        loss = F.smooth_l1_loss(value, target) - (torch.stack(log_probs) * (target - value.detach())).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach(), sum(rewards)

    return Program(policy, episode, lambda i: i, trains=True)
