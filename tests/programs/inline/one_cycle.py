"""A one-cycle schedule that moves the learning rate and Adam's betas after every batch, with both in the progress text."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()

    torch.manual_seed(0)
    batches = args.steps // args.epochs
    data = torch.randn(batches * 16, 24)
    target = data[:, :3].sum(1, keepdim=True).tanh()
    loader = DataLoader(TensorDataset(data, target), batch_size=16, shuffle=True)

    model = nn.Sequential(nn.Linear(24, 48), nn.LayerNorm(48), nn.GELU(), nn.Dropout(0.1), nn.Linear(48, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.99), weight_decay=0.01)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.01, total_steps=args.steps, pct_start=0.3)

    losses = []
    for epoch in range(args.epochs):
        model.train()
        for batch, (x, y) in enumerate(loader):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            losses.append(loss.item())
            group = optimizer.param_groups[0]
            if batch % 5 == 0:
                moved = f"lr {group['lr']:.2e} beta {group['betas'][0]:.3f}"
                print(f"epoch {epoch} {batch}/{batches} loss {loss.item():.5f} {moved}")
        print(f"epoch {epoch}: mean loss {sum(losses[-batches:]) / batches:.5f}, lr {scheduler.get_last_lr()[0]:.6f}")

    print(f"losses {sum(losses):.9f}")
    print(f"checksum {sum(p.double().sum().item() for p in model.parameters()):.9f}")


if __name__ == "__main__":
    main()
