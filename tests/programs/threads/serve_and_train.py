"""Threads that serve the same models, beside threads that train each its own."""

import sys
import threading

import torch
from torch import nn

sys.setswitchinterval(1e-6)


class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(4, 8), nn.Linear(8, 4), nn.Linear(8, 4)

    def forward(self, x):
        h = torch.tanh(self.a(x))
        rows = []
        for v in h.sum(1).tolist():
            rows.append(round(v, 3))
        if h.mean().item() > 0.0:
            y = self.b(h) * 2
        else:
            y = self.c(h) - 1
        k = h[h > 0.1]
        if len(k):
            y = y + k.mean()
        return y, rows


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))

    def forward(self, x, scale=1.0):
        return self.l(x) * scale


torch.manual_seed(0)
shared, small = Gate(), Small()
gates = [Gate() for _ in range(6)]
inputs = [torch.randn(2 + i % 3, 4) for i in range(12)]


def serve(name, results):
    out = 0.0
    with torch.no_grad():
        for r in range(8):
            for x in inputs:
                y, rows = shared(x)
                out += y.sum().item() + sum(rows)
                out += small(x, 1.0 + r % 2).sum().item()
    results[name] = f"{out:.4f}"


def train(name, results):
    model = gates[name]
    head = nn.Linear(4, 1)
    with torch.no_grad():
        head.weight.fill_(0.1)
        head.bias.fill_(0.0)
    opt = torch.optim.Adam([*model.parameters(), *head.parameters()], lr=0.01)
    total = 0.0
    for _ in range(6):
        for x in inputs:
            opt.zero_grad()
            y, _ = model(x)
            loss = head(y).square().mean()
            loss.backward()
            opt.step()
            total += loss.item()
    results[name] = f"{total:.4f}"


results = {}
threads = [threading.Thread(target=(train if i % 2 else serve), args=(i, results)) for i in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(sorted(results.items()))
