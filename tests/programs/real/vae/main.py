import argparse
import os

import numpy as np
import torch
import torch.utils.data
from torch import nn, optim
from torch.nn import functional as F

parser = argparse.ArgumentParser(description="A variational autoencoder")
parser.add_argument("--batch-size", type=int, default=128, metavar="N")
parser.add_argument("--epochs", type=int, default=10, metavar="N")
parser.add_argument("--seed", type=int, default=1, metavar="S")
parser.add_argument("--log-interval", type=int, default=10, metavar="N", help="batches between two lines of the log")
args = parser.parse_args()

torch.manual_seed(args.seed)
device = torch.device("cpu")
print(f"Using device: {device}")
os.makedirs("results", exist_ok=True)


class Images(torch.utils.data.Dataset):
    """Images in a file that is mapped, not read."""

    def __init__(self, path):
        self.images = np.load(path, mmap_mode="r")

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return torch.from_numpy(self.images[index].astype(np.float32) / 255).unsqueeze(0), 0


def save_image(images, path, nrow=8):
    """A picture of a grid of images, in the format PGM."""
    n, _, h, w = images.shape
    rows = -(-n // nrow)
    grid = torch.zeros(rows * nrow, h, w)
    grid[:n] = images[:, 0]
    grid = grid.view(rows, nrow, h, w).transpose(1, 2).reshape(rows * h, nrow * w)
    pixels = grid.mul(255).add(0.5).clamp(0, 255).to(torch.uint8).numpy()
    with open(path, "wb") as f:
        f.write(b"P5 %d %d 255\n" % (pixels.shape[1], pixels.shape[0]))
        f.write(pixels.tobytes())


train_loader = torch.utils.data.DataLoader(Images("data/train.npy"), batch_size=args.batch_size, shuffle=True)
test_loader = torch.utils.data.DataLoader(Images("data/test.npy"), batch_size=args.batch_size, shuffle=False)


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(784, 400)
        self.fc21 = nn.Linear(400, 20)
        self.fc22 = nn.Linear(400, 20)
        self.fc3 = nn.Linear(20, 400)
        self.fc4 = nn.Linear(400, 784)

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


def loss_function(recon_x, x, mu, logvar):
    """The error of the reconstruction and the divergence from a normal distribution, over the batch."""
    BCE = F.binary_cross_entropy(recon_x, x.view(-1, 784), reduction="sum")
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return BCE + KLD


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
                "Train Epoch: {} [{}/{} ({:.0f}%)]\tLoss: {:.9f}".format(
                    epoch,
                    batch_idx * len(data),
                    len(train_loader.dataset),
                    100.0 * batch_idx / len(train_loader),
                    loss.item() / len(data),
                )
            )

    print(f"====> Epoch: {epoch} Average loss: {train_loss / len(train_loader.dataset):.9f}")


def test(epoch):
    model.eval()
    test_loss = 0
    with torch.no_grad():
        for i, (data, _) in enumerate(test_loader):
            data = data.to(device)
            recon_batch, mu, logvar = model(data)
            test_loss += loss_function(recon_batch, data, mu, logvar).item()
            if i == 0:
                n = min(data.size(0), 8)
                comparison = torch.cat([data[:n], recon_batch.view(args.batch_size, 1, 28, 28)[:n]])
                save_image(comparison.cpu(), f"results/reconstruction_{epoch}.pgm", nrow=n)

    test_loss /= len(test_loader.dataset)
    print(f"====> Test set loss: {test_loss:.9f}")


if __name__ == "__main__":
    for epoch in range(1, args.epochs + 1):
        train(epoch)
        test(epoch)
        with torch.no_grad():
            sample = torch.randn(64, 20).to(device)
            sample = model.decode(sample).cpu()
            save_image(sample.view(64, 1, 28, 28), f"results/sample_{epoch}.pgm")
