"""A loop of accelerate: prepared model, optimizer and scheduler, clipped gradients, accumulation."""

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(7)
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, 40)
x = torch.randn(320, 8)
loader = DataLoader(TensorDataset(x, (x.sum(1) > 0).long()), 16)
model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)


def main():
    for epoch in range(3):
        for inputs, labels in loader:
            with accelerator.accumulate(model):
                loss = F.cross_entropy(model(inputs), labels)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
        accelerator.print(f"epoch {epoch}: loss {loss.item():.5f}, lr {scheduler.get_last_lr()[0]:.5f}")


main()
