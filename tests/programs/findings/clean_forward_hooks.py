"""Forward hooks that change the output and that collect activations."""

import torch
from torch import nn

collected = {}


def keep(name):
    def hook(module, args, output):
        collected[name] = output.detach()  # expect: MP302 `collected[name]`

    return hook


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
net[0].register_forward_hook(keep("first"))
net[2].register_forward_pre_hook(lambda module, args: (args[0] * 2,))
for _ in range(2):
    net(torch.randn(2, 4))
