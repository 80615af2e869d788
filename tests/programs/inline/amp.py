"""Mixed precision on the CPU: autocast to bfloat16, and a gradient scaler that is on."""

import argparse

import torch
from torch import nn


def make_model(width, depth):
    layers = [nn.Linear(width, width) if n % 2 == 0 else nn.GELU() for n in range(2 * depth - 1)]
    return nn.Sequential(*layers, nn.LayerNorm(width), nn.Linear(width, 8))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--no-amp", dest="use_amp", action="store_false")
    args = parser.parse_args()

    torch.manual_seed(0)
    num_batches = max(1, args.steps // args.epochs)
    data = [torch.randn(args.batch_size, args.width) for _ in range(num_batches)]
    mix = torch.randn(args.width, 8) / args.width**0.5
    targets = [torch.tanh(d @ mix) for d in data]

    net = make_model(args.width, depth=3)
    loss_fn = nn.MSELoss()
    opt = torch.optim.AdamW(net.parameters(), lr=2e-3)
    scaler = torch.amp.GradScaler("cpu", enabled=args.use_amp, growth_interval=25)

    losses = []
    for epoch in range(args.epochs):
        epoch_loss = 0.0
        for input, target in zip(data, targets, strict=True):
            with torch.autocast("cpu", torch.bfloat16, enabled=args.use_amp):
                output = net(input)
                loss = loss_fn(output.float(), target)

            scaler.scale(loss).backward()

            # Clipping needs the gradients as they are.
            scaler.unscale_(opt)
            norm = torch.nn.utils.clip_grad_norm_(net.parameters(), max_norm=0.5)

            scaler.step(opt)
            scaler.update()
            opt.zero_grad()
            epoch_loss += loss.item()
        losses.append(epoch_loss)
        print(f"epoch {epoch}: loss {epoch_loss / num_batches:.5f}, norm {norm:.4f}, scale {scaler.get_scale():.0f}")

    print(f"losses {sum(losses):.9f}")
    print(f"checksum {sum(p.double().sum().item() for p in net.parameters()):.9f}")


if __name__ == "__main__":
    main()
