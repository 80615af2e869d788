"""A few calls of a model that took half a minute to compile (the harness says so: see ``# measured``)."""

# mode: compiled
# measured: eager_s=0.010 compiled_s=0.004 compile_s=30
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(*[nn.Linear(16, 16) for _ in range(6)])

    def forward(self, x):  # expect: MP403 `def forward`
        return self.layers(x)


torch.manual_seed(0)
model = Model()
x = torch.randn(8, 16)
for _ in range(20):
    model(x)
