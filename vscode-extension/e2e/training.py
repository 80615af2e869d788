"""A training loop that goes on until the file `finish` is beside it: for looking at the view of a running program."""

from pathlib import Path

import torch

FINISH = Path(__file__).with_name("finish")


def main() -> None:
    torch.manual_seed(0)
    layers = [layer for _ in range(4) for layer in (torch.nn.Linear(64, 64), torch.nn.GELU())]
    model = torch.nn.Sequential(*layers, torch.nn.Linear(64, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    step = 0
    while not FINISH.exists():
        x = torch.randn(256, 64)
        y = x[:, :4].sum(dim=1, keepdim=True).tanh() + 0.3 * torch.randn(256, 1)
        optimizer.zero_grad()
        loss = (model(x) - y).square().mean()
        loss.backward()
        optimizer.step()
        step += 1
        if step % 50 == 0:
            print(f"step {step}  loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
