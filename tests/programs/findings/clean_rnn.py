"""Recurrent layers, with and without a packed batch."""

import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(10, 6)
        self.rnn = nn.GRU(6, 5, batch_first=True, bidirectional=True)
        self.head = nn.Linear(10, 3)

    def forward(self, ids, state=None):
        out, state = self.rnn(self.embed(ids), state)
        return self.head(out), state


torch.manual_seed(0)
model = Tagger()
for _ in range(2):
    scores, state = model(torch.randint(10, (2, 7)))
    scores.sum().backward()
