"""Writes points on two spirals, and which spiral each is on."""

import os

import numpy as np

rng = np.random.default_rng(4)
folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
os.makedirs(folder, exist_ok=True)
for name, count in (("train", 320), ("val", 80), ("test", 80)):
    label = rng.integers(0, 2, count)
    t = rng.uniform(0.5, 3, count)
    angle = 2 * t + np.pi * label
    points = np.stack([t * np.cos(angle), t * np.sin(angle)], axis=1) + rng.normal(0, 0.05, (count, 2))
    np.savez(os.path.join(folder, f"{name}.npz"), x=points.astype(np.float32), y=label)
