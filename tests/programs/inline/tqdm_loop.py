"""A loop under a progress bar: the bar wraps the loader and shows the last loss on stderr."""

import argparse
import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class ProgressBar:
    def __init__(self, iterable, desc="", width=20, mininterval=0.05):
        self.iterable = iterable
        self.total = len(iterable)
        self.desc = desc
        self.width = width
        self.mininterval = mininterval
        self.n = 0
        self.postfix = ""
        self.start = self.last_print = time.time()

    def __len__(self):
        return self.total

    def __iter__(self):
        for item in self.iterable:
            yield item
            self.update(1)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def update(self, n):
        self.n += n
        now = time.time()
        if now - self.last_print >= self.mininterval:
            self.last_print = now
            self.refresh()

    def set_postfix(self, **values):
        self.postfix = ", ".join(f"{k}={v:.4f}" if isinstance(v, float) else f"{k}={v}" for k, v in values.items())

    def refresh(self):
        done = self.width * self.n // max(1, self.total)
        rate = self.n / max(1e-9, time.time() - self.start)
        bar = "#" * done + "." * (self.width - done)
        sys.stderr.write(f"\r{self.desc} |{bar}| {self.n}/{self.total} [{rate:.1f}it/s, {self.postfix}]")
        sys.stderr.flush()

    def close(self):
        self.refresh()
        sys.stderr.write("\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=60, help="training steps in all epochs together")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32)
    args = parser.parse_args()

    torch.manual_seed(0)
    count = max(1, args.steps // args.epochs) * args.batch_size
    y = torch.randint(4, (count,))
    x = torch.randn(4, 3, 16)[y] + torch.randn(count, 3, 16)
    loader = DataLoader(TensorDataset(x, y), batch_size=args.batch_size, shuffle=True, drop_last=True)

    model = nn.Sequential(
        nn.Conv1d(3, 16, 3, padding=1),
        nn.BatchNorm1d(16),
        nn.ReLU(),
        nn.Conv1d(16, 16, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(256, 4),
    )
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.steps)

    losses = []
    for epoch in range(args.epochs):
        correct = seen = 0
        with ProgressBar(loader, desc=f"epoch {epoch + 1}/{args.epochs}") as bar:
            for inputs, labels in bar:
                optimizer.zero_grad()
                outputs = model(inputs)
                loss = criterion(outputs, labels)
                loss.backward()
                optimizer.step()
                scheduler.step()

                correct += (outputs.argmax(1) == labels).sum().item()
                seen += labels.size(0)
                losses.append(loss.item())
                bar.set_postfix(loss=loss.item(), acc=correct / seen, lr=scheduler.get_last_lr()[0])
        print(f"epoch {epoch + 1}: accuracy {correct / seen:.4f}, last loss {losses[-1]:.5f}")

    print(f"losses {sum(losses):.9f}")
    print(f"checksum {sum(p.double().sum().item() for p in model.parameters()):.9f}")


if __name__ == "__main__":
    main()
