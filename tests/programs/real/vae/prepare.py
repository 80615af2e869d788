"""Writes images of soft blobs: where a blob is and how wide, decides each image, so there is something to find."""

import os

import numpy as np

rng = np.random.default_rng(5)
grid = np.linspace(-1, 1, 28)
folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
os.makedirs(folder, exist_ok=True)
for name, count in (("train", 800), ("test", 150)):
    cx, cy, width = rng.uniform(-0.5, 0.5, (3, count, 1, 1))
    images = np.exp(-(8 + 4 * width) * ((grid[None, None, :] - cx) ** 2 + (grid[None, :, None] - cy) ** 2))
    np.save(os.path.join(folder, f"{name}.npy"), (255 * images).astype(np.uint8))
