"""Gradient accumulation: an optimizer step after every few batches."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=60, help="batches in all epochs together")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--accum", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=0.05)
    args = parser.parse_args()

    torch.manual_seed(0)
    accum = args.accum
    batches = max(1, args.steps // args.epochs)
    x = torch.randn(batches * args.batch_size, 64)
    y = (x[:, :4].sum(1) > 0).long() + (x[:, 4:8].sum(1) > 0).long()
    loader = DataLoader(TensorDataset(x, y), batch_size=args.batch_size, shuffle=True)

    model = nn.Sequential(
        nn.Linear(64, 192), nn.BatchNorm1d(192), nn.ReLU(), nn.Linear(192, 192), nn.ReLU(), nn.Linear(192, 3)
    )
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, nesterov=True)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=args.lr * 2, total_steps=max(4, args.epochs * (batches // accum + 1))
    )

    total = 0.0
    for epoch in range(args.epochs):
        running_loss = 0.0
        model.train()
        optimizer.zero_grad()
        for i, (inputs, labels) in enumerate(loader):
            outputs = model(inputs)
            loss = criterion(outputs, labels)
            running_loss += loss.item()
            loss = loss / accum
            loss.backward()
            if (i + 1) % accum == 0:
                optimizer.step()
                optimizer.zero_grad()
                scheduler.step()
            if (i + 1) % 10 == 0:
                print(f"[{epoch + 1}, {i + 1:5d}] loss: {running_loss / 10:.5f} lr: {scheduler.get_last_lr()[0]:.5f}")
                total += running_loss
                running_loss = 0.0
        total += running_loss

    print(f"losses {total:.9f}")
    print(f"checksum {sum(p.double().sum().item() for p in model.parameters()):.9f}")


if __name__ == "__main__":
    main()
