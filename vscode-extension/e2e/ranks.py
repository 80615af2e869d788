"""Two torch.distributed processes: one graph break in both, and one that only rank 1 reaches."""

import torch
import torch.distributed as dist


class Net(torch.nn.Module):
    def __init__(self, rank: int) -> None:
        super().__init__()
        self.rank = rank
        self.layer = torch.nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.layer(x)
        if self.rank == 1:
            y = y * 2 if y.max() > 0 else y
        return y + 1 if y.sum() > 0 else y - 1


if __name__ == "__main__":
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    net = Net(dist.get_rank())
    for _ in range(3):
        net(torch.randn(4, 8))
    dist.destroy_process_group()
