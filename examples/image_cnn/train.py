"""Train a small residual CNN on generated pictures of shapes.

python train.py --steps 200 --workers 2
"""

import argparse
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from data import SHAPES, Shapes
from torch.utils.data import DataLoader


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--workers", type=int, default=2, help="processes that load and augment pictures")
    return parser.parse_args()


class ResidualBlock(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int = 1, dropout: float = 0.1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.dropout = nn.Dropout2d(dropout)
        self.shortcut: nn.Module | None = None
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        residual = x if self.shortcut is None else self.shortcut(x)
        x = F.relu(self.bn1(self.conv1(x)), inplace=True)
        x = self.dropout(self.bn2(self.conv2(x)))
        return F.relu(x + residual, inplace=True)


class ShapeNet(nn.Module):
    def __init__(self, classes: int, width: int = 16) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True)
        )
        self.layers = nn.Sequential(
            ResidualBlock(width, width),
            ResidualBlock(width, 2 * width, stride=2),
            ResidualBlock(2 * width, 4 * width, stride=2),
        )
        self.dropout = nn.Dropout(0.2)
        self.classifier = nn.Linear(4 * width, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.layers(self.stem(x))
        x = x.mean(dim=(2, 3))
        return self.classifier(self.dropout(x))


@torch.no_grad()
def accuracy(model: ShapeNet, loader: DataLoader, device: str) -> float:
    model.eval()
    right = total = 0
    for pictures, labels in loader:
        predicted = model(pictures.to(device)).argmax(dim=1).cpu()
        right += (predicted == labels).sum().item()
        total += len(labels)
    model.train()
    return right / total


def main() -> None:
    args = parse_args()
    torch.manual_seed(args.seed)
    train_set = Shapes(1280, seed=args.seed, augment=True)
    # BatchNorm needs full batches, so the training loader drops the rest; the last validation batch is smaller.
    train_loader = DataLoader(
        train_set, args.batch_size, shuffle=True, drop_last=True,
        num_workers=args.workers, persistent_workers=args.workers > 0,
    )  # fmt: skip
    val_loader = DataLoader(Shapes(300, seed=args.seed + 1), batch_size=128)

    model = ShapeNet(len(SHAPES)).to(args.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, weight_decay=5e-4, nesterov=True)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.steps)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.05)
    print(f"{sum(p.numel() for p in model.parameters()) / 1e3:.0f} k parameters, {len(train_set)} pictures")
    print(f"epoch  0  accuracy {accuracy(model, val_loader, args.device):.3f}")

    start = time.perf_counter()
    step = epoch = 0
    while step < args.steps:
        epoch += 1
        losses = []
        for pictures, labels in train_loader:
            pictures, labels = pictures.to(args.device), labels.to(args.device)
            loss = criterion(model(pictures), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            step += 1

            losses.append(loss.item())
            if step % 10 == 0:
                print(f"step {step:4d}  loss {losses[-1]:.4f}  lr {scheduler.get_last_lr()[0]:.4f}")
            if step == args.steps:
                break
        mean_loss = sum(losses) / len(losses)
        print(f"epoch {epoch:2d}  mean loss {mean_loss:.4f}  accuracy {accuracy(model, val_loader, args.device):.3f}")
    print(f"{step} steps in {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
