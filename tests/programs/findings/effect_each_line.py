"""A change of one object at several lines, some of them in branches: each line is said to make it."""

import torch
from torch import nn

total = calls = 0


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.history = []
        self.last = {}
        self.state = ""

    def note(self, kind):
        if kind == "pos":
            self.history.append("pos")  # expect: MP302 `self.history.append("pos")`
        else:
            self.history.append("neg")  # expect: MP302 `self.history.append("neg")`

    def forward(self, x):
        global total, calls
        self.state = "running"  # expect: MP301 `self.state`
        self.note("pos")
        self.note("neg")
        self.last["first"] = 1  # expect: MP302 `self.last["first"]`
        self.last["second"] = 2  # expect: MP302 `self.last["second"]`
        total = 10  # expect: MP303 `total`
        calls = 20  # expect: MP303 `calls`
        total = 30  # expect: MP303 `total`
        self.state = "done"  # expect: MP301 `self.state`
        return self.layer(x)


torch.manual_seed(0)
net = Net()
for _ in range(3):
    net(torch.randn(2, 4))
