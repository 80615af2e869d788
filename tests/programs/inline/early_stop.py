"""Training that ends early: a return inside the loop, a continue for broken batches, and the best weights kept."""

import argparse
import copy
import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def evaluate(model, loader, criterion):
    model.eval()
    total, count = 0.0, 0
    with torch.no_grad():
        for x, y in loader:
            total += criterion(model(x), y).item() * len(x)
            count += len(x)
    return total / count


def fit(model, train_loader, val_loader, optimizer, epochs, threshold, patience, history):
    """The best weights and why the training ended."""
    criterion = nn.MSELoss()
    best_loss = math.inf
    best_state = copy.deepcopy(model.state_dict())
    bad_epochs = 0
    skipped = 0
    for epoch in range(epochs):
        model.train()
        for step, (x, y) in enumerate(train_loader):
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            if torch.isnan(loss):
                skipped += 1
                print(f"epoch {epoch} step {step}: nan, skipped")
                continue
            loss.backward()
            optimizer.step()
            history.append(loss.item())
            if loss.item() < threshold:
                return best_state, f"below {threshold} in epoch {epoch}, step {step}, {skipped} skipped"

        val_loss = evaluate(model, val_loader, criterion)
        if val_loss < best_loss:
            best_loss = val_loss
            best_state = copy.deepcopy(model.state_dict())
            bad_epochs = 0
            print(f"epoch {epoch}: val loss {val_loss:.5f}, new best")
        else:
            bad_epochs += 1
            print(f"epoch {epoch}: val loss {val_loss:.5f}, no improvement for {bad_epochs}")
            if bad_epochs >= patience:
                return best_state, f"no improvement for {patience} epochs"
    return best_state, f"all epochs done, {skipped} skipped"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=70, help="training steps at most")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--threshold", type=float, default=0.03)
    parser.add_argument("--patience", type=int, default=5)
    parser.add_argument("--lr", type=float, default=2e-3)
    args = parser.parse_args()

    torch.manual_seed(0)
    batches = max(1, min(10, args.steps))
    x = torch.randn((batches + 2) * args.batch_size, 16)
    y = torch.sin(x[:, :1]) + 0.5 * x[:, 1:2]
    split = batches * args.batch_size
    x[split // 2, 3] = math.nan  # a sensor failed
    train_loader = DataLoader(TensorDataset(x[:split], y[:split]), batch_size=args.batch_size, shuffle=True)
    val_loader = DataLoader(TensorDataset(x[split:], y[split:]), batch_size=args.batch_size)

    model = nn.Sequential(nn.Linear(16, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    history = []
    best, reason = fit(
        model, train_loader, val_loader, optimizer, max(1, args.steps // batches), args.threshold, args.patience, history
    )
    print(f"stopped after {len(history)} steps: {reason}")
    last = sum(p.double().sum().item() for p in model.parameters())
    model.load_state_dict(best)

    print(f"losses {sum(history):.9f}")
    print(f"checksum {last + sum(p.double().sum().item() for p in model.parameters()):.9f}")


if __name__ == "__main__":
    main()
