"""An endless loader, and an evaluation every few steps that keeps the best weights and stops early."""

import argparse
import copy
import itertools
import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    correct = seen = 0
    loss = 0.0
    for x, y in loader:
        out = model(x)
        loss += nn.functional.cross_entropy(out, y, reduction="sum").item()
        correct += (out.argmax(1) == y).sum().item()
        seen += len(y)
    model.train()
    return loss / seen, correct / seen


def endless(loader):
    while True:
        yield from loader


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--eval-every", type=int, default=12)
    args = parser.parse_args()

    torch.manual_seed(0)
    x = torch.randn(320, 16)
    y = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
    train = DataLoader(TensorDataset(x[:256], y[:256]), batch_size=16, shuffle=True)
    valid = DataLoader(TensorDataset(x[256:], y[256:]), batch_size=32)
    model = nn.Sequential(nn.Linear(16, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)

    best, best_state, stale = math.inf, None, 0
    running = 0.0
    for step, (inputs, labels) in enumerate(itertools.islice(endless(train), args.steps)):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        running += loss.item()

        if (step + 1) % args.eval_every == 0:
            val_loss, accuracy = evaluate(model, valid)
            plateau.step(val_loss)
            print(f"step {step + 1}: train {running / args.eval_every:.5f} val {val_loss:.5f} accuracy {accuracy:.3f}")
            running = 0.0
            if val_loss < best:
                best, best_state, stale = val_loss, copy.deepcopy(model.state_dict()), 0
            else:
                stale += 1
                if stale == 20:
                    break

    model.load_state_dict(best_state)
    print(f"best {best:.9f}")
    print(f"checksum {sum(p.double().sum().item() for p in model.parameters()):.9f}")


if __name__ == "__main__":
    main()
