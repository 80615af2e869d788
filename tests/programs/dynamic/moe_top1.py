"""A transformer with a mixture of experts: each token goes to its best expert (Switch); experts without tokens don't run."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.programs.dynamic.program import Program, generator

WIDTH, EXPERTS, WORDS = 96, 6, 200


class SwitchFeedForward(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(WIDTH, EXPERTS)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)) for _ in range(EXPERTS)
        )
        self.load = [0] * EXPERTS

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        tokens = x.reshape(-1, WIDTH)
        gate, chosen = F.softmax(self.router(tokens), dim=-1).max(-1)
        output = torch.zeros_like(tokens)
        for number, expert in enumerate(self.experts):
            mask = chosen == number
            if mask.any():
                index = mask.nonzero().squeeze(1)
                result = expert(tokens.index_select(0, index))
                output.index_add_(0, index, result * gate.index_select(0, index).unsqueeze(1))
                self.load[number] += len(index)
        return output.view_as(x)


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = nn.MultiheadAttention(WIDTH, 4, batch_first=True)
        self.feed_forward = SwitchFeedForward()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm1(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.feed_forward(self.norm2(x))


class SwitchTransformer(nn.Module):
    def __init__(self, layers: int = 3) -> None:
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(layers))
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def sentence(i: int) -> torch.Tensor:
    """A topic has few words: its tokens use few experts."""
    g = generator(i)
    topic = torch.randint(WORDS, (1 + i % 5,), generator=g)
    return topic[torch.randint(len(topic), (1, 48), generator=g)]


def program() -> Program:
    model = SwitchTransformer().eval()
    with torch.no_grad():
        for layer in model.layers:
            layer.feed_forward.router.weight.mul_(3)

    @torch.no_grad()
    def predict(tokens: torch.Tensor) -> torch.Tensor:
        return model(tokens)

    return Program(model, predict, sentence)
