"""A training loop that goes on until the file `finish` is beside it: for looking at the view of a running program."""

from pathlib import Path

import torch

FINISH = Path(__file__).with_name("finish")


def main() -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    x = torch.randn(256, 64)
    y = x.square().mean(dim=1, keepdim=True)
    step = 0
    while not FINISH.exists():
        optimizer.zero_grad()
        loss = (model(x) - y).square().mean()
        loss.backward()
        optimizer.step()
        step += 1
        if step % 50 == 0:
            print(f"step {step}  loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
