"""What a training script does on the side: attributes, lists, globals, closures, text and buffers."""

import logging

import torch
from torch import nn

log = logging.getLogger("train")
history = []
STEPS = 0


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.norm = nn.BatchNorm1d(4)
        self.register_buffer("running", torch.zeros(4))

    def forward(self, x):
        h = self.norm(self.layer(x))  # expect: MP306 `self.norm(self.layer(x))`
        self.running.lerp_(h.detach().mean(0), 0.1)  # expect: MP306 `self.running.lerp_(h.detach().mean(0), 0.1)`
        self.last = h.detach()  # expect: MP301 `self.last`
        history.append(h.detach().mean())  # expect: MP302 `history.append(h.detach().mean())`
        log.warning("a batch")  # expect: MP305 `log.warning("a batch")`
        return h


def counted(model):
    seen = 0

    def step(x):  # region
        nonlocal seen
        global STEPS
        seen += x.shape[0]  # expect: MP304 `seen`
        STEPS += 1  # expect: MP303 `STEPS`
        print("step")  # expect: MP305 `print("step")`
        return model(x)

    return step


torch.manual_seed(0)
log.propagate = False
log.addHandler(logging.NullHandler())
net = Net()
step = counted(nn.Linear(4, 4))
for _ in range(3):
    net(torch.randn(3, 4))
    step(torch.randn(3, 4))
