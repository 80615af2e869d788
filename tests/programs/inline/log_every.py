"""A loop at the top level of a script that writes a line of JSON and prints the speed every few steps."""

import argparse
import json
import sys
import tempfile
import time
from datetime import timedelta

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=60)
parser.add_argument("--log-every", type=int, default=10)
args = parser.parse_args()

torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(30, 16), nn.Flatten(), nn.Linear(16 * 6, 32), nn.SiLU(), nn.Linear(32, 30))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
warmup = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 10))
tokens = torch.randint(30, (args.steps, 8, 7))
log = tempfile.TemporaryFile("w+")

tokens_seen = 0
total = 0.0
interval = 0.0
start = last = time.perf_counter()
for step, batch in enumerate(tokens, start=1):
    inputs, targets = batch[:, :-1], batch[:, -1]
    loss = nn.functional.cross_entropy(model(inputs), targets)
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    warmup.step()
    tokens_seen += inputs.numel()
    interval += loss.item()
    total += loss.item()
    if step % args.log_every == 0:
        now = time.perf_counter()
        rate = args.log_every / (now - last)
        left = timedelta(seconds=int((args.steps - step) / rate))
        row = {"step": step, "loss": interval / args.log_every, "norm": norm.item(), "tokens": tokens_seen}
        row["lr"] = optimizer.param_groups[0]["lr"]
        log.write(json.dumps(row) + "\n")
        print(json.dumps({key: f"{value:.5g}" for key, value in row.items()}))
        print(f"{rate:.1f} steps/s, {left} left", file=sys.stderr)
        interval, last = 0.0, now

log.seek(0)
print(len(log.readlines()), "lines")
print(f"losses {total:.9f}, took a while: {time.perf_counter() > start}")
print(f"checksum {sum(p.double().sum().item() for p in model.parameters()):.9f}")
