"""All kinds of containers changed, each at its own line."""

from collections import OrderedDict, defaultdict, deque

import torch
from torch import nn

seen, counts, recent, order = set(), defaultdict(int), deque(maxlen=3), OrderedDict(a=1, b=2)
rows = [1, 2, 3]


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x, name):
        seen.add(name)  # expect: MP302 `seen.add(name)`
        counts[name] += 1  # expect: MP302 `counts[name]`
        recent.append(x.shape[0])  # expect: MP302 `recent.append(x.shape[0])`
        order.move_to_end("a")  # expect: MP302 `order.move_to_end("a")`
        rows.pop()  # expect: MP302 `rows.pop()`
        del rows[0]  # expect: MP302 `rows[0]`
        return self.layer(x)


torch.manual_seed(0)
Net()(torch.randn(2, 4), "first")
