"""Programs that use einops."""

# ruff: noqa
import torch
from torch import nn
import einops
from einops.layers.torch import Rearrange, Reduce


def args(i):
    return (torch.linspace(0, 1 + i, 48).reshape(2, 4, 6),)


# === patterns
pattern = {"in": "b h w -> b (h w)", "out": "b (h w) -> w b h"}


def region(x):
    y = einops.rearrange(x, pattern["in"])
    return einops.rearrange(y, pattern["out"], h=4), einops.reduce(x, "b h w -> b w", "mean")


def change_pattern():
    pattern["in"] = "b h w -> b (w h)"


# === layers
region = nn.Sequential(Rearrange("b h w -> b w h"), nn.Linear(4, 4), Reduce("b w h -> b h", "max"))

# === sizes
seen = []


def region(x):
    shape = einops.parse_shape(x, "b h _")
    seen.append(shape["h"])
    return einops.repeat(x, "b h w -> b (h n) w", n=2) * shape["b"]


def args(i):
    return (torch.ones(2, 3 + i // 3, 4),)
