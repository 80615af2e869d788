"""A distribution checks its arguments inside torch: the finding is at the user's call, the path ends in the library."""

import torch
from torch import nn
from torch.distributions import Normal


class Policy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mean = nn.Linear(4, 2)

    def forward(self, observation):
        distribution = Normal(self.mean(observation), 1.0, validate_args=True)  # expect: MP101 `Normal(self.mean(observation), 1.0, validate_args=True)`
        return distribution.log_prob(observation[:, :2])  # expect: MP101 `distribution.log_prob(observation[:, :2])`


torch.manual_seed(0)
policy = Policy()
policy(torch.randn(3, 4))
