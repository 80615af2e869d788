"""A codebook that is normalised by assigning to .data, and a private random generator."""

# backend: inductor
import torch
from torch import nn
from torch.nn import functional as F


class Quantiser(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.codebook = nn.Parameter(torch.randn(5, 4))
        self.noise = torch.Generator().manual_seed(0)

    def forward(self, x):
        self.codebook.data = F.normalize(self.codebook, dim=-1)  # expect: MP106 `self.codebook.data`
        jitter = torch.rand(x.shape, generator=self.noise)  # expect: MP116 `torch.rand(x.shape, generator=self.noise)`
        return (x + jitter) @ self.codebook.t()


torch.manual_seed(0)
Quantiser()(torch.randn(2, 4))
