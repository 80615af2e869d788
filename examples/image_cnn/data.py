"""Generated pictures: one coloured shape on a noisy background, labelled by the kind of shape."""

import torch
from torch.utils.data import Dataset

SHAPES = ["disc", "ring", "square", "cross", "stripes", "triangle"]
SIZE = 32


def draw(label: int, generator: torch.Generator) -> torch.Tensor:
    """One SIZE x SIZE RGB picture as a uint8 tensor."""
    cy, cx = (SIZE * (0.35 + 0.3 * torch.rand(2, generator=generator))).tolist()
    radius = SIZE * (0.18 + 0.14 * torch.rand((), generator=generator).item())
    y, x = torch.meshgrid(torch.arange(SIZE) - cy, torch.arange(SIZE) - cx, indexing="ij")
    distance = (x**2 + y**2).sqrt()
    name = SHAPES[label]
    if name == "disc":
        mask = distance < radius
    elif name == "ring":
        mask = (distance < radius) & (distance > 0.6 * radius)
    elif name == "square":
        mask = (x.abs() < 0.85 * radius) & (y.abs() < 0.85 * radius)
    elif name == "cross":
        mask = ((x.abs() < 0.3 * radius) | (y.abs() < 0.3 * radius)) & (distance < radius)
    elif name == "stripes":
        mask = (distance < radius) & (y.remainder(0.6 * radius) < 0.3 * radius)
    else:
        mask = (y < 0.7 * radius) & (2 * x.abs() < y + radius)
    paper, ink = torch.rand(2, 3, 1, 1, generator=generator) * 0.5
    picture = torch.where(mask, ink + 0.5, paper) + 0.08 * torch.randn(3, SIZE, SIZE, generator=generator)
    return (picture.clamp(0, 1) * 255).to(torch.uint8)


class Shapes(Dataset):
    """``count`` pictures drawn once from a seed; with ``augment`` each access flips, shifts and recolours them."""

    def __init__(self, count: int, seed: int, augment: bool = False) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.labels = torch.randint(len(SHAPES), (count,), generator=generator)
        self.pictures = torch.stack([draw(label, generator) for label in self.labels.tolist()])
        self.augment = augment

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        picture = self.pictures[index].float() / 255
        if self.augment:
            picture = self.random_view(picture)
        return (picture - 0.5) / 0.25, self.labels[index]

    @staticmethod
    def random_view(picture: torch.Tensor) -> torch.Tensor:
        if torch.rand(()) < 0.5:
            picture = picture.flip(-1)
        padded = torch.nn.functional.pad(picture[None], (3, 3, 3, 3), mode="reflect")[0]
        top, left = torch.randint(7, (2,)).tolist()
        picture = padded[:, top : top + SIZE, left : left + SIZE]
        return (picture * (0.8 + 0.4 * torch.rand(()))).clamp(0, 1)
