"""A model that a compiler with a bug computes wrongly: the pass below drops each `tanh`. For looking at the difference."""

import time
from typing import Any

import torch
from torch import nn
from torch._inductor import config
from torch._inductor.custom_graph_pass import CustomGraphPass


class DropsTanh(CustomGraphPass):
    def __call__(self, graph: torch.fx.Graph) -> None:
        for node in list(graph.nodes):
            if node.target is torch.ops.aten.tanh.default:
                node.replace_all_uses_with(node.args[0])
                graph.erase_node(node)

    def uuid(self) -> Any:
        return None


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(64, 64), nn.Linear(64, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.first(x)
        return self.last(torch.tanh(hidden))


def main() -> None:
    config.post_grad_custom_post_pass = DropsTanh()
    torch.manual_seed(0)
    net = Net()
    with torch.no_grad():
        for step in range(40):
            print(f"step {step}  sum {net(torch.randn(8, 64)).sum().item():.4f}", flush=True)
            time.sleep(1.0)  # leaves the processor to what looks for the cause


if __name__ == "__main__":
    main()
