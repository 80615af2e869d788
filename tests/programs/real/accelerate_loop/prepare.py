"""Writes short sequences of numbers and which of the numbers occurs most often."""

import os

import torch

generator = torch.Generator().manual_seed(12)
folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
os.makedirs(folder, exist_ok=True)
for name, count in (("train", 260), ("eval", 70)):
    sequences = torch.randint(6, (count, 12), generator=generator)
    torch.save({"inputs": sequences, "labels": sequences.mode(dim=1).values}, os.path.join(folder, f"{name}.pt"))
