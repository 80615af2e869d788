"""A training step as a region, up to the loss."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
encoder, decoder = nn.Linear(6, 3), nn.Linear(3, 6)


def loss_of(x, beta=0.1):  # region
    code = encoder(x).tanh()
    noise = torch.randn_like(code)
    out = decoder(code + beta * noise)
    return F.mse_loss(out, x) + beta * code.square().mean()


for _ in range(3):
    loss_of(torch.randn(4, 6)).backward()
