"""A notebook turned into a script: all of it at the top level, with a clock around every step."""

import argparse
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=60)
args = parser.parse_args()

torch.manual_seed(42)

BATCH = 32
x_all = torch.rand(512, 8) * 4 - 2
y_all = torch.sin(x_all).sum(1, keepdim=True) + 0.1 * torch.randn(512, 1)

model = nn.Sequential(
    nn.Linear(8, 128),
    nn.Tanh(),
    nn.Linear(128, 128),
    nn.Tanh(),
    nn.Linear(128, 1),
)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.99)

history = []
step_times = []
best = float("inf")

for step in range(args.steps):
    start = time.perf_counter()

    idx = torch.randint(0, len(x_all), (BATCH,))
    xb, yb = x_all[idx], y_all[idx]

    pred = model(xb)
    loss = F.smooth_l1_loss(pred, yb)

    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()

    history.append(loss.item())
    if history[-1] < best:
        best = history[-1]
        best_step = step

    step_times.append(time.perf_counter() - start)
    if step % 10 == 0:
        print(f"step {step:4d}  loss {history[-1]:.5f}  mean of the last ten {sum(history[-10:]) / len(history[-10:]):.5f}")

print(f"best {best:.5f} at step {best_step}")
print(f"median step {sorted(step_times)[len(step_times) // 2] * 1000:.2f} ms", file=sys.stderr)

print(f"losses {sum(history):.9f}")
print(f"checksum {sum(p.double().sum().item() for p in model.parameters()):.9f}")
