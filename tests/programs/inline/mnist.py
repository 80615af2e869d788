"""Digits with a small convolutional network: an epoch's training is a function, its loop is written out."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, TensorDataset

logged = []


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 3, 1)
        self.conv2 = nn.Conv2d(4, 8, 3, 1)
        self.dropout1 = nn.Dropout(0.25)
        self.dropout2 = nn.Dropout(0.5)
        self.fc1 = nn.Linear(200, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = F.max_pool2d(x, 2)
        x = torch.flatten(self.dropout1(x), 1)
        x = self.dropout2(F.relu(self.fc1(x)))
        return F.log_softmax(self.fc2(x), dim=1)


def train(args, model, device, train_loader, optimizer, epoch):
    model.train()
    for batch_idx, (data, target) in enumerate(train_loader):
        data, target = data.to(device), target.to(device)
        optimizer.zero_grad()
        output = model(data)
        loss = F.nll_loss(output, target)
        loss.backward()
        optimizer.step()
        if batch_idx % args.log_interval == 0:
            seen, total = batch_idx * len(data), len(train_loader.dataset)
            percent = 100.0 * batch_idx / len(train_loader)
            print(f"Train Epoch: {epoch} [{seen}/{total} ({percent:.0f}%)]\tLoss: {loss.item():.6f}")
            logged.append(loss.item())
            if args.dry_run:
                break


def test(model, device, test_loader):
    model.eval()
    test_loss = 0
    correct = 0
    with torch.no_grad():
        for data, target in test_loader:
            data, target = data.to(device), target.to(device)
            output = model(data)
            test_loss += F.nll_loss(output, target, reduction="sum").item()
            pred = output.argmax(dim=1, keepdim=True)
            correct += pred.eq(target.view_as(pred)).sum().item()

    total = len(test_loader.dataset)
    test_loss /= total
    logged.append(test_loss)
    print(f"\nTest set: Average loss: {test_loss:.4f}, Accuracy: {correct}/{total} ({100.0 * correct / total:.0f}%)\n")


def digits(count, templates):
    target = torch.randint(len(templates), (count,))
    return TensorDataset(templates[target] + 0.5 * torch.randn(count, 1, 14, 14), target)


def main():
    parser = argparse.ArgumentParser(description="Digits")
    parser.add_argument("--steps", type=int, default=60, help="training steps in all epochs together")
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--test-batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--lr", type=float, default=1.0)
    parser.add_argument("--gamma", type=float, default=0.7, help="the learning rate's factor from epoch to epoch")
    parser.add_argument("--dry-run", action="store_true", help="one step per epoch")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log-interval", type=int, default=5)
    parser.add_argument("--save-model", metavar="PATH")
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    device = torch.device("cpu")

    templates = torch.randn(10, 1, 14, 14)
    train_kwargs = {"batch_size": args.batch_size, "shuffle": True, "num_workers": 0}
    test_kwargs = {"batch_size": args.test_batch_size, "num_workers": 0}
    train_loader = DataLoader(digits(max(1, args.steps // args.epochs) * args.batch_size, templates), **train_kwargs)
    test_loader = DataLoader(digits(256, templates), **test_kwargs)

    model = Net().to(device)
    optimizer = optim.Adadelta(model.parameters(), lr=args.lr)

    scheduler = StepLR(optimizer, step_size=1, gamma=args.gamma)
    for epoch in range(1, args.epochs + 1):
        train(args, model, device, train_loader, optimizer, epoch)
        test(model, device, test_loader)
        scheduler.step()

    if args.save_model:
        torch.save(model.state_dict(), args.save_model)

    print(f"losses {sum(logged):.9f}")
    print(f"checksum {sum(p.double().sum().item() for p in model.parameters()):.9f}")


if __name__ == "__main__":
    main()
