"""A DCGAN: two networks, two optimizers and three backward passes in one loop inside main()."""

import argparse
import random

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


def weights_init(m):
    classname = m.__class__.__name__
    if classname.find("Conv") != -1:
        nn.init.normal_(m.weight, 0.0, 0.02)
    elif classname.find("BatchNorm") != -1:
        nn.init.normal_(m.weight, 1.0, 0.02)
        nn.init.zeros_(m.bias)


class Generator(nn.Module):
    def __init__(self, nz, ngf):
        super().__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(nz, ngf, 4, 1, 0, bias=False),
            nn.BatchNorm2d(ngf),
            nn.ReLU(True),
            nn.ConvTranspose2d(ngf, 1, 4, 2, 1, bias=False),
            nn.Tanh(),
        )

    def forward(self, input):
        return self.main(input)


class Discriminator(nn.Module):
    def __init__(self, ndf):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(1, ndf, 4, 2, 1, bias=False),
            nn.BatchNorm2d(ndf),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf, 1, 4, 1, 0, bias=False),
            nn.Sigmoid(),
        )

    def forward(self, input):
        return self.main(input).view(-1, 1).squeeze(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=60, help="training steps in all epochs together")
    parser.add_argument("--niter", type=int, default=3, help="epochs")
    parser.add_argument("--batchSize", type=int, default=8)
    parser.add_argument("--nz", type=int, default=16, help="size of the latent vector")
    parser.add_argument("--ngf", type=int, default=8)
    parser.add_argument("--ndf", type=int, default=8)
    parser.add_argument("--lr", type=float, default=0.0002)
    parser.add_argument("--beta1", type=float, default=0.5)
    parser.add_argument("--manualSeed", type=int, default=7)
    parser.add_argument("--dry-run", action="store_true")
    opt = parser.parse_args()

    print("Random Seed: ", opt.manualSeed)
    random.seed(opt.manualSeed)
    torch.manual_seed(opt.manualSeed)
    device = torch.device("cpu")

    count = max(1, opt.steps // opt.niter) * opt.batchSize
    stripes = torch.sin(torch.linspace(0, 6, 8).view(1, 1, 1, 8) + 6 * torch.rand(count, 1, 1, 1))
    dataset = TensorDataset(stripes.expand(count, 1, 8, 8).contiguous(), torch.zeros(count))
    dataloader = DataLoader(dataset, batch_size=opt.batchSize, shuffle=True, num_workers=0)

    netG = Generator(opt.nz, opt.ngf).to(device)
    netG.apply(weights_init)
    netD = Discriminator(opt.ndf).to(device)
    netD.apply(weights_init)

    criterion = nn.BCELoss()
    fixed_noise = torch.randn(opt.batchSize, opt.nz, 1, 1, device=device)
    real_label = 1
    fake_label = 0
    G_losses = []
    D_losses = []

    optimizerD = optim.Adam(netD.parameters(), lr=opt.lr, betas=(opt.beta1, 0.999))
    optimizerG = optim.Adam(netG.parameters(), lr=opt.lr, betas=(opt.beta1, 0.999))

    if opt.dry_run:
        opt.niter = 1

    for epoch in range(opt.niter):
        for i, data in enumerate(dataloader, 0):
            # (1) The discriminator, first with real images, then with generated ones.
            netD.zero_grad()
            real = data[0].to(device)
            batch_size = real.size(0)
            label = torch.full((batch_size,), real_label, dtype=real.dtype, device=device)

            output = netD(real)
            errD_real = criterion(output, label)
            errD_real.backward()
            D_x = output.mean().item()

            noise = torch.randn(batch_size, opt.nz, 1, 1, device=device)
            fake = netG(noise)
            label.fill_(fake_label)
            output = netD(fake.detach())
            errD_fake = criterion(output, label)
            errD_fake.backward()
            D_G_z1 = output.mean().item()
            errD = errD_real + errD_fake
            optimizerD.step()

            # (2) The generator: its images should pass for real ones.
            netG.zero_grad()
            label.fill_(real_label)
            output = netD(fake)
            errG = criterion(output, label)
            errG.backward()
            D_G_z2 = output.mean().item()
            optimizerG.step()

            if i % 5 == 0:
                print(
                    "[%d/%d][%d/%d] Loss_D: %.4f Loss_G: %.4f D(x): %.4f D(G(z)): %.4f / %.4f"  # noqa: UP031
                    % (epoch, opt.niter, i, len(dataloader), errD.item(), errG.item(), D_x, D_G_z1, D_G_z2)
                )
            if i % 10 == 0:
                with torch.no_grad():
                    fake = netG(fixed_noise)
                print("brightness of the fixed samples: %.5f" % fake.mean())  # noqa: UP031

            G_losses.append(errG.item())
            D_losses.append(errD.item())

            if opt.dry_run:
                break

    total = sum(p.double().sum().item() for net in (netG, netD) for p in net.parameters())
    print(f"losses {sum(G_losses) + sum(D_losses):.9f}")
    print(f"checksum {total:.9f}")


if __name__ == "__main__":
    main()
