"""A loop whose variables nested functions read and rebind, with lambdas and comprehensions over them."""

import argparse
import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=60, help="training steps in all epochs together")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=24)
    args = parser.parse_args()

    torch.manual_seed(5)
    count = max(1, args.steps // args.epochs) * args.batch_size
    features = torch.randn(count, 20)
    labels = (features[:, 0] > 0).long() * 2 + (features[:, 1] > 0).long()
    loader = DataLoader(TensorDataset(features, labels), batch_size=args.batch_size, shuffle=True)

    trunk = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
    heads = nn.ModuleList([nn.Linear(64, 4) for _ in range(3)])
    params = [*trunk.parameters(), *heads.parameters()]
    optimizer = torch.optim.RMSprop(params, lr=2e-3)

    smooth = None
    best = math.inf
    stale = 0
    epoch = step = 0
    history = []
    wins = [0] * len(heads)

    # The schedule reads a variable that the loop changes through `track`.
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda _: 0.9 ** (epoch + stale // 4))
    columns = {"at": lambda: f"{epoch}:{step:02d}", "smooth": lambda: f"{smooth:.4f}", "stale": lambda: str(stale)}

    def augment(strength):
        nonlocal x
        if step % 2:
            x = x + strength * torch.randn_like(x)

    def track(value):
        nonlocal smooth, best, stale
        smooth = value if smooth is None else 0.8 * smooth + 0.2 * value
        if smooth < best:
            best, stale = smooth, 0
        else:
            stale += 1
        return smooth

    for epoch in range(args.epochs):
        for step, (x, y) in enumerate(loader):
            augment(0.1 / (1 + epoch))
            optimizer.zero_grad(set_to_none=True)
            hidden = trunk(x)
            outputs = [head(hidden) for head in heads]
            parts = [F.cross_entropy(out, y) for out in outputs]
            weights = [1.0 / (1 + abs(epoch - k)) for k in range(len(parts))]
            loss = sum(w * part for w, part in zip(weights, parts, strict=True)) / sum(weights)
            loss.backward()
            torch.nn.utils.clip_grad_value_([p for p in params if p.grad is not None], 0.5)
            optimizer.step()
            scheduler.step()

            values = [part.item() for part in parts]
            wins[min(range(len(values)), key=lambda k: values[k])] += 1
            history.append(track(loss.item()))
            if step % 5 == 0:
                print("  ".join(f"{name} {show()}" for name, show in columns.items()))

    print(f"best {best:.5f}, stale {stale}, wins {wins}")
    print(f"losses {sum(history):.9f}")
    print(f"checksum {sum(p.double().sum().item() for p in params):.9f}")


if __name__ == "__main__":
    main()
