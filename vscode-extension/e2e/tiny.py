"""A small, fast model with a graph break: for comparing engines and for checks on save."""

import torch


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.layer(x)
        if y.sum() > 0:
            y = y * 2
        else:
            y = y - 1
        return y


if __name__ == "__main__":
    torch.manual_seed(0)
    net = Net()
    for _ in range(30):
        net(torch.randn(4, 8))
