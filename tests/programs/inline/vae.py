"""A variational autoencoder: the model and the optimizer are globals of the script."""

import argparse

import torch
from torch import nn, optim
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser(description="VAE")
parser.add_argument("--steps", type=int, default=60, help="training steps in all epochs together")
parser.add_argument("--batch-size", type=int, default=32)
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--log-interval", type=int, default=10)
args = parser.parse_args()

torch.manual_seed(args.seed)
device = torch.device("cpu")


def images(count):
    """Soft blobs: two random factors decide each image, so that there is something to find."""
    grid = torch.linspace(-1, 1, 28)
    cx, cy = torch.rand(2, count, 1, 1) - 0.5
    return torch.exp(-8 * ((grid.view(1, 1, 28) - cx) ** 2 + (grid.view(1, 28, 1) - cy) ** 2)).unsqueeze(1)


train_count = max(1, args.steps // args.epochs) * args.batch_size
train_loader = DataLoader(
    TensorDataset(images(train_count), torch.zeros(train_count)), batch_size=args.batch_size, shuffle=True
)
test_loader = DataLoader(TensorDataset(images(128), torch.zeros(128)), batch_size=args.batch_size)


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(784, 100)
        self.fc21 = nn.Linear(100, 8)
        self.fc22 = nn.Linear(100, 8)
        self.fc3 = nn.Linear(8, 100)
        self.fc4 = nn.Linear(100, 784)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std)
        return mu + eps * std

    def decode(self, z):
        h3 = F.relu(self.fc3(z))
        return torch.sigmoid(self.fc4(h3))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 784))
        z = self.reparameterize(mu, logvar)
        return self.decode(z), mu, logvar


model = VAE().to(device)
optimizer = optim.Adam(model.parameters(), lr=1e-3)
epoch_losses = []


def loss_function(recon_x, x, mu, logvar):
    """The reconstruction error, and how far the posterior is from a standard normal distribution."""
    bce = F.binary_cross_entropy(recon_x, x.view(-1, 784), reduction="sum")
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return bce + kld


def train(epoch):
    model.train()
    train_loss = 0
    for batch_idx, (data, _) in enumerate(train_loader):
        data = data.to(device)
        optimizer.zero_grad()
        recon_batch, mu, logvar = model(data)
        loss = loss_function(recon_batch, data, mu, logvar)
        loss.backward()
        train_loss += loss.item()
        optimizer.step()
        if batch_idx % args.log_interval == 0:
            print(
                f"Train Epoch: {epoch} [{batch_idx * len(data)}/{len(train_loader.dataset)} "
                f"({100.0 * batch_idx / len(train_loader):.0f}%)]\tLoss: {loss.item() / len(data):.6f}"
            )

    average = train_loss / len(train_loader.dataset)
    epoch_losses.append(average)
    print(f"====> Epoch: {epoch} Average loss: {average:.4f}")


def test(epoch):
    model.eval()
    test_loss = 0
    with torch.no_grad():
        for data, _ in test_loader:
            data = data.to(device)
            recon_batch, mu, logvar = model(data)
            test_loss += loss_function(recon_batch, data, mu, logvar).item()

    test_loss /= len(test_loader.dataset)
    epoch_losses.append(test_loss)
    print(f"====> Epoch: {epoch} Test set loss: {test_loss:.4f}")


if __name__ == "__main__":
    for epoch in range(1, args.epochs + 1):
        train(epoch)
        test(epoch)
        with torch.no_grad():
            sample = torch.randn(16, 8).to(device)
            sample = model.decode(sample).cpu()
            print(f"a sample's brightness: {sample.mean().item():.5f}")

    print(f"losses {sum(epoch_losses):.9f}")
    print(f"checksum {sum(p.double().sum().item() for p in model.parameters()):.9f}")
