"""A step function that uses accelerate."""

import torch
from accelerate import Accelerator
from torch import nn

accelerator = Accelerator(cpu=True)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=20)
model, optimizer, scheduler = accelerator.prepare(model, optimizer, scheduler)
x = torch.randn(64, 4)
y = x.sum(1, keepdim=True)


def train_step(x, y):
    with accelerator.accumulate(model):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
    return loss.detach()


for i in range(24):
    at = i % 8 * 8
    print(f"{train_step(x[at : at + 8], y[at : at + 8]):.6f}")
