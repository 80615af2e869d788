"""Writes a graph of papers: words, class and citations, which are mostly within a class."""

import os

import numpy as np

rng = np.random.default_rng(6)
nodes, words, classes = 120, 40, 4
label = rng.integers(0, classes, nodes)
likely = rng.uniform(0.02, 0.3, (classes, words))
folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "papers")
os.makedirs(folder, exist_ok=True)
with open(os.path.join(folder, "papers.content"), "w") as f:
    for i in range(nodes):
        row = (rng.uniform(size=words) < likely[label[i]]).astype(int)
        row[0] = 1
        f.write("\t".join([str(100 + i), *map(str, row), f"class_{label[i]}"]) + "\n")
with open(os.path.join(folder, "papers.cites"), "w") as f:
    for i in range(nodes):
        close = np.flatnonzero(label == label[i])
        for j in {*rng.choice(close, 3), *rng.choice(nodes, 1)} - {i}:
            f.write(f"{100 + i}\t{100 + j}\n")
