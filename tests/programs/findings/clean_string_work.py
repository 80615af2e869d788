"""Text processing on Python strings next to the tensors."""

import re
import textwrap

import torch
from torch import nn

VOCABULARY = {word: i for i, word in enumerate("a graph of the whole program".split())}


class Bag(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.EmbeddingBag(len(VOCABULARY), 4)

    def forward(self, text: str):
        words = re.findall(r"[a-z]+", text.lower().strip())
        ids = [VOCABULARY[w] for w in sorted(set(words)) if w in VOCABULARY]
        title = textwrap.shorten(text.title(), 20)
        return self.table(torch.tensor([ids])), f"{title!r:>30}", "-".join(words)


torch.manual_seed(0)
bag = Bag()
for _ in range(2):
    bag("The whole graph of A program")
