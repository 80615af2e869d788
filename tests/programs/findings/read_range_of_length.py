"""The longest length decides how often a recurrent cell runs."""

import torch
from torch import nn


class Rnn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(4, 4)

    def forward(self, x, lengths):
        h = x.new_zeros(x.shape[0], 4)
        longest = int(lengths.max())
        for t in range(longest):  # expect: MP102 `range(longest)`
            h = self.cell(x[:, t], h)
        return h


torch.manual_seed(0)
Rnn()(torch.randn(2, 5, 4), torch.tensor([3, 2]))
