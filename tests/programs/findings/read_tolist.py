"""Token ids turned into a list, and looked up in a Python dict."""

import torch
from torch import nn

WORDS = {0: "a", 1: "b", 2: "c"}


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(3, 4)

    def forward(self, ids):
        rows = ids.tolist()
        words = [WORDS[i] for i in rows]  # expect: MP102 `WORDS[i]`
        return self.table(ids) * len(words[0])


torch.manual_seed(0)
Net()(torch.tensor([0, 2, 1]))
