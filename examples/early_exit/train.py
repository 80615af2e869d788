"""Train a classifier that spends more layers on noisy recordings than on clear ones.

In training every exit learns; in evaluation a batch leaves at the first exit whose signal is clear enough.

    python train.py --steps 600 --threshold 0.9
"""

import argparse
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from data import MICROPHONES, RHYTHMS, recordings


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--threshold", type=float, default=0.9, help="how clear a signal must be to leave early")
    return parser.parse_args()


def clarity(signal: torch.Tensor) -> torch.Tensor:
    """Mean correlation of neighbouring samples: near 1 for a smooth signal, near 0 for noise."""
    centred = signal - signal.mean(dim=-1, keepdim=True)
    return (centred[..., 1:] * centred[..., :-1]).sum() / centred.square().sum()


class Stage(nn.Module):
    """Smooths the signal a little more and extracts features, together with those of earlier stages."""

    def __init__(self, inputs: int, width: int, classes: int) -> None:
        super().__init__()
        self.conv = nn.Conv1d(inputs + 1, width, kernel_size=9, padding=4)
        self.norm = nn.BatchNorm1d(width)
        self.mix = nn.Conv1d(width, width, kernel_size=5, padding=2)
        self.exit = nn.Linear(8 * width, classes)

    def forward(self, features: torch.Tensor, signal: torch.Tensor) -> torch.Tensor:
        features = F.relu(self.norm(self.conv(torch.cat([features, signal], dim=1))))
        return F.relu(self.mix(features))

    def classify(self, features: torch.Tensor) -> torch.Tensor:
        return self.exit(F.adaptive_avg_pool1d(features, 8).flatten(1))


class EarlyExitNet(nn.Module):
    def __init__(self, classes: int, threshold: float, width: int = 24, stages: int = 3) -> None:
        super().__init__()
        self.threshold = threshold
        self.stages = nn.ModuleList(Stage(1 if i == 0 else width, width, classes) for i in range(stages))
        self.exits_taken = [0] * stages

    def forward(self, recording: torch.Tensor) -> torch.Tensor | list[torch.Tensor]:
        # Recordings come at any gain: bring the loudest sample of the batch to 1.
        peak = recording.abs().amax().item()
        signal = recording / max(peak, 1e-6)

        features = signal
        logits = []
        for i, stage in enumerate(self.stages):
            if i > 0:
                signal = F.avg_pool1d(signal, kernel_size=3, stride=1, padding=1)
            features = stage(features, signal)
            logits.append(stage.classify(features))
            if not self.training:
                confidence = clarity(signal)
                if confidence.item() > self.threshold or i == len(self.stages) - 1:
                    self.exits_taken[i] += 1
                    return logits[-1]
        return logits


@torch.no_grad()
def evaluate(model: EarlyExitNet, batches: list[tuple[torch.Tensor, torch.Tensor]]) -> float:
    model.eval()
    right = sum((model(recording).argmax(dim=1) == labels).float().mean().item() for recording, labels in batches)
    model.train()
    return right / len(batches)


def main() -> None:
    args = parse_args()
    torch.manual_seed(args.seed)
    generator = torch.Generator().manual_seed(args.seed)

    def batch(microphone: str) -> tuple[torch.Tensor, torch.Tensor]:
        recording, labels = recordings(microphone, args.batch_size, generator)
        return recording.to(args.device), labels.to(args.device)

    microphones = list(MICROPHONES)
    val_batches = [batch(microphone) for _ in range(4) for microphone in microphones]
    model = EarlyExitNet(len(RHYTHMS), args.threshold).to(args.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    print(f"{sum(p.numel() for p in model.parameters()) / 1e3:.0f} k parameters, {len(model.stages)} exits")
    print(f"step    0  accuracy {evaluate(model, val_batches):.3f}  exits taken {model.exits_taken}")

    start = time.perf_counter()
    for step in range(1, args.steps + 1):
        recording, labels = batch(microphones[step % len(microphones)])
        losses = [F.cross_entropy(logits, labels) for logits in model(recording)]
        loss = torch.stack(losses).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}  per exit {', '.join(f'{x.item():.3f}' for x in losses)}")
        if step % 100 == 0:
            print(f"step {step:4d}  accuracy {evaluate(model, val_batches):.3f}  exits taken {model.exits_taken}")
    print(f"{args.steps} steps in {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
