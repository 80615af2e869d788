"""Kornia's augmentations in front of a model, in a loop as users write it."""

import kornia.augmentation as K
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(7)
augment = nn.Sequential(K.RandomHorizontalFlip(p=0.5), K.RandomErasing(p=0.5), K.ColorJitter(0.1, 0.1, 0.1, 0.1, p=0.8))
normalize = K.Normalize(mean=torch.tensor([0.5, 0.5, 0.5]), std=torch.tensor([0.25, 0.25, 0.25]))
model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(128, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
images, labels = torch.rand(64, 3, 16, 16), torch.randint(0, 4, (64,))


def main():
    for step in range(30):
        at = step % 8 * 8
        with torch.no_grad():
            x = normalize(augment(images[at : at + 8]))
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), labels[at : at + 8])
        loss.backward()
        optimizer.step()
        if step % 10 == 9:
            print(f"step {step}: loss {loss.item():.5f}")


main()
