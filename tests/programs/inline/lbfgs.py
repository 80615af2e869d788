"""A regression fitted by LBFGS with a line search, batch by batch: each step calls its closure a few times."""

import argparse

import torch
from torch import nn


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=60)
    args = parser.parse_args()

    torch.manual_seed(0)
    x = torch.rand(64, 2) * 2 - 1
    y = (x[:, :1] * x[:, 1:]).sin() + 0.05 * torch.randn(64, 1)
    model = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 1))
    criterion = nn.MSELoss()
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.3, max_iter=4, history_size=5, line_search_fn="strong_wolfe")

    evaluations = 0
    history = []
    for step in range(args.steps):
        batch = torch.randperm(64)[:32]
        inputs, targets = x[batch], y[batch]

        def closure():
            nonlocal evaluations
            evaluations += 1
            optimizer.zero_grad()
            loss = criterion(model(inputs), targets)  # noqa: B023
            loss.backward()
            return loss

        loss = optimizer.step(closure)
        history.append(loss.item())
        if step % 10 == 0:
            print(f"step {step}: loss {loss.item():.6f}, {evaluations} evaluations")

    print(f"losses {sum(history):.9f}, {evaluations} evaluations")
    print(f"checksum {sum(p.double().sum().item() for p in model.parameters()):.9f}")


if __name__ == "__main__":
    main()
