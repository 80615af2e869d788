"""A child-sum tree-LSTM over nested Python trees: the recursion follows each sentence's parse."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import nn

from tests.programs.dynamic.program import Program

WORDS, CLASSES = 150, 5


@dataclass
class Tree:
    word: int
    children: list[Tree] = field(default_factory=list)


class TreeLSTM(nn.Module):
    def __init__(self, width: int = 128) -> None:
        super().__init__()
        self.embed = nn.Embedding(WORDS, width)
        self.iou_x, self.iou_h = nn.Linear(width, 3 * width), nn.Linear(width, 3 * width, bias=False)
        self.forget_x, self.forget_h = nn.Linear(width, width), nn.Linear(width, width, bias=False)
        self.out = nn.Linear(width, CLASSES)

    def node(self, tree: Tree) -> tuple[torch.Tensor, torch.Tensor]:
        states = [self.node(child) for child in tree.children]
        x = self.embed(torch.tensor([tree.word]))
        if not states:
            i, o, u = self.iou_x(x).chunk(3, dim=1)
            c = torch.sigmoid(i) * torch.tanh(u)
        else:
            h = torch.cat([h for h, _ in states])
            c = torch.cat([c for _, c in states])
            i, o, u = (self.iou_x(x) + self.iou_h(h.sum(0, keepdim=True))).chunk(3, dim=1)
            forget = torch.sigmoid(self.forget_x(x) + self.forget_h(h))
            c = torch.sigmoid(i) * torch.tanh(u) + (forget * c).sum(0, keepdim=True)
        return torch.sigmoid(o) * torch.tanh(c), c

    def forward(self, tree: Tree) -> torch.Tensor:
        return self.out(self.node(tree)[0])


def parse(rng: random.Random, depth: int) -> Tree:
    children = rng.choice((0, 1, 2, 2)) if depth else 0
    return Tree(rng.randrange(WORDS), [parse(rng, depth - 1) for _ in range(children)])


#: A treebank has sentences of the same form.
FORMS = 12


def sample(i: int) -> tuple[Tree, torch.Tensor]:
    shape, words = random.Random(i % FORMS), random.Random(1000 + i)
    tree = Tree(words.randrange(WORDS), [parse(shape, 3), parse(shape, 2)])
    todo = list(tree.children)
    while todo:
        node = todo.pop()
        node.word = words.randrange(WORDS)
        todo += node.children
    return tree, torch.tensor([words.randrange(CLASSES)])


def program() -> Program:
    model = TreeLSTM()
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.01)

    def train(pair: tuple[Tree, torch.Tensor]) -> torch.Tensor:
        tree, label = pair
        optimizer.zero_grad()
        loss = F.cross_entropy(model(tree), label)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Program(model, train, sample, trains=True)
