"""Lines of an open file, one for each call."""

import torch
from torch import nn

with open("words.txt", "w", encoding="utf-8") as out:
    out.write("one\ntwo\nthree\n")
lines = open("words.txt", encoding="utf-8")
model = nn.Linear(4, 1)


def step(x):  # region
    word = next(lines)  # expect: MP108 `next(lines)`
    return model(x) * len(word)


torch.manual_seed(0)
for _ in range(2):
    step(torch.randn(2, 4))
lines.close()
