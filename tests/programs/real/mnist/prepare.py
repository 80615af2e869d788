"""Writes digits in the format of the well-known files: noisy pictures of ten patterns."""

import os
import struct

import numpy as np

rng = np.random.default_rng(11)
patterns = rng.uniform(0, 255, (10, 7, 7)).repeat(4, axis=1).repeat(4, axis=2)
folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
os.makedirs(folder, exist_ok=True)
for name, count in (("train", 640), ("test", 256)):
    labels = rng.integers(0, 10, count).astype(np.uint8)
    images = np.clip(patterns[labels] + rng.normal(0, 90, (count, 28, 28)), 0, 255).astype(np.uint8)
    with open(os.path.join(folder, f"{name}-images"), "wb") as f:
        f.write(struct.pack(">IIII", 2051, count, 28, 28) + images.tobytes())
    with open(os.path.join(folder, f"{name}-labels"), "wb") as f:
        f.write(struct.pack(">II", 2049, count) + labels.tobytes())
