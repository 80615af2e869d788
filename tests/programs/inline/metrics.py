"""Metrics after each batch: a confusion matrix, top-k accuracy, meters, a window of losses and an average that decays."""

import argparse
from collections import defaultdict, deque

import torch
from torch import nn


class SmoothedValue:
    def __init__(self, window_size=10):
        self.deque = deque(maxlen=window_size)
        self.total = 0.0
        self.count = 0

    def update(self, value, n=1):
        self.deque.append(value)
        self.count += n
        self.total += value * n

    @property
    def median(self):
        return torch.tensor(list(self.deque)).median().item()

    @property
    def global_avg(self):
        return self.total / self.count

    def __str__(self):
        return f"{self.median:.4f} ({self.global_avg:.4f})"


class ConfusionMatrix:
    def __init__(self, num_classes):
        self.num_classes = num_classes
        self.mat = None

    def update(self, a, b):
        n = self.num_classes
        if self.mat is None:
            self.mat = torch.zeros((n, n), dtype=torch.int64)
        with torch.inference_mode():
            k = (a >= 0) & (a < n)
            inds = n * a[k].to(torch.int64) + b[k]
            self.mat += torch.bincount(inds, minlength=n**2).reshape(n, n)

    def compute(self):
        h = self.mat.float()
        return (torch.diag(h).sum() / h.sum()).item()


def accuracy(output, target, topk=(1,)):
    with torch.no_grad():
        maxk = max(topk)
        _, pred = output.topk(maxk, 1, True, True)
        correct = pred.t().eq(target.view(1, -1).expand(maxk, target.size(0)))
        return [correct[:k].reshape(-1).float().sum(0).mul(100.0 / target.size(0)).item() for k in topk]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=60)
    args = parser.parse_args()

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 5))
    optimizer = torch.optim.RMSprop(model.parameters(), lr=2e-3)
    meters = defaultdict(SmoothedValue)
    matrix = ConfusionMatrix(5)
    smooth = None

    for i in range(args.steps):
        image = torch.randn(16, 12)
        target = image[:, :5].argmax(1)
        output = model(image)
        loss = nn.functional.cross_entropy(output, target, label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

        acc1, acc2 = accuracy(output, target, topk=(1, 2))
        matrix.update(target, output.argmax(1))
        meters["loss"].update(loss.item())
        meters["acc1"].update(acc1, n=len(image))
        meters["acc2"].update(acc2, n=len(image))
        smooth = loss.item() if smooth is None else 0.9 * smooth + 0.1 * loss.item()
        if i % 10 == 9:
            print(f"[{i}]", "  ".join(f"{name}: {meter}" for name, meter in meters.items()), f"smooth {smooth:.4f}")

    print(f"accuracy {matrix.compute():.9f}, losses {meters['loss'].total:.9f}")
    print(f"checksum {sum(p.double().sum().item() for p in model.parameters()):.9f}")


if __name__ == "__main__":
    main()
