"""A student that follows its own moving average: the teacher's update is part of the loop."""

import argparse
import copy
import math

import torch
import torch.nn.functional as F
from torch import nn


class Encoder(nn.Module):
    def __init__(self, width=64, out=16):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(32, width), nn.BatchNorm1d(width), nn.GELU(), nn.Linear(width, width))
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, out, bias=False))

    def forward(self, x):
        return self.head(self.body(x))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--momentum", type=float, default=0.95)
    parser.add_argument("--temperature", type=float, default=0.2)
    parser.add_argument("--log-every", type=int, default=10)
    args = parser.parse_args()

    torch.manual_seed(11)
    centers = 2 * torch.randn(8, 32)
    student = Encoder()
    teacher = copy.deepcopy(student)
    for p in teacher.parameters():
        p.requires_grad = False
    center = torch.zeros(1, 16)
    optimizer = torch.optim.AdamW(student.parameters(), lr=1e-3, weight_decay=0.05)
    metrics = {"loss": [], "entropy": [], "grad_norm": [], "momentum": []}

    student.train()
    teacher.train()
    for step in range(args.steps):
        clean = centers[torch.randint(8, (args.batch_size,))]
        view1 = clean + 0.3 * torch.randn_like(clean)
        view2 = clean + 0.3 * torch.randn_like(clean)

        with torch.no_grad():
            raw = teacher(view1)
            wanted = F.softmax((raw - center) / (args.temperature / 2), dim=-1)
        found = F.log_softmax(student(view2) / args.temperature, dim=-1)
        loss = -(wanted * found).sum(-1).mean()

        optimizer.zero_grad()
        loss.backward()
        grad_norm = torch.nn.utils.clip_grad_norm_(student.parameters(), 3.0)
        optimizer.step()

        # The teacher: a moving average whose momentum goes to 1.
        momentum = 1 - (1 - args.momentum) * (math.cos(math.pi * step / args.steps) + 1) / 2
        with torch.no_grad():
            for ema, p in zip(teacher.parameters(), student.parameters(), strict=True):
                ema.mul_(momentum).add_(p.detach(), alpha=1 - momentum)
            for ema, b in zip(teacher.buffers(), student.buffers(), strict=True):
                ema.copy_(b)
            center = 0.9 * center + 0.1 * raw.mean(0, keepdim=True)

        metrics["loss"].append(loss.item())
        metrics["entropy"].append(-(wanted * wanted.clamp_min(1e-8).log()).sum(-1).mean().item())
        metrics["grad_norm"].append(grad_norm.item())
        metrics["momentum"].append(momentum)
        if (step + 1) % args.log_every == 0:
            means = {name: sum(values[-args.log_every :]) / args.log_every for name, values in metrics.items()}
            print(f"step {step + 1}: " + ", ".join(f"{name} {value:.4f}" for name, value in means.items()))

    total = sum(p.double().sum().item() for net in (student, teacher) for p in net.parameters())
    print(f"losses {sum(metrics['loss']):.9f}")
    print(f"checksum {total:.9f}")


if __name__ == "__main__":
    main()
