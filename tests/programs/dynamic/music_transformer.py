"""A Music-Transformer-like decoder: relative attention by skewing, generating events until a piece ends or is full."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.programs.dynamic.program import Program, generator

EVENTS, END, LONGEST, WIDTH, HEADS = 128, 0, 24, 96, 4


class RelativeAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.wq, self.wk, self.wv, self.fc = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.relative = nn.Parameter(torch.randn(LONGEST, WIDTH // HEADS) * 0.3)

    def split(self, x: torch.Tensor) -> torch.Tensor:
        return x.reshape(x.shape[0], x.shape[1], HEADS, -1).permute(0, 2, 1, 3)

    def skew(self, scores: torch.Tensor) -> torch.Tensor:
        batch, heads, length, _ = scores.shape
        padded = F.pad(scores, (1, 0))
        return padded.reshape(batch, heads, length + 1, length)[:, :, 1:]

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        q, k, v = self.split(self.wq(x)), self.split(self.wk(x)), self.split(self.wv(x))
        length = x.shape[1]
        distances = torch.einsum("bhld,md->bhlm", q, self.relative[LONGEST - length :])
        logits = (q @ k.transpose(-1, -2) + self.skew(distances)) / math.sqrt(WIDTH // HEADS)
        if mask is not None:
            logits = logits + mask * -1e9
        return self.fc((logits.softmax(-1) @ v).permute(0, 2, 1, 3).reshape(x.shape))


class DecoderLayer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = RelativeAttention()
        self.pre, self.suf = nn.Linear(WIDTH, WIDTH // 2), nn.Linear(WIDTH // 2, WIDTH)
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH, eps=1e-6), nn.LayerNorm(WIDTH, eps=1e-6)

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        x = self.norm1(x + self.attention(x, mask))
        return self.norm2(x + self.suf(F.relu(self.pre(x))))


class MusicTransformer(nn.Module):
    def __init__(self, layers: int = 2) -> None:
        super().__init__()
        self.embedding = nn.Embedding(EVENTS, WIDTH)
        self.layers = nn.ModuleList(DecoderLayer() for _ in range(layers))
        self.fc = nn.Linear(WIDTH, EVENTS)

    def decode(self, events: torch.Tensor) -> torch.Tensor:
        length = events.shape[1]
        mask = None
        if length > 1:
            mask = torch.triu(torch.ones(length, length), diagonal=1)
        x = self.embedding(events) * math.sqrt(WIDTH)
        for layer in self.layers:
            x = layer(x, mask)
        return self.fc(x[:, -1])

    def forward(self, prior: torch.Tensor) -> torch.Tensor:
        events = prior
        while events.shape[1] < LONGEST:
            probabilities = self.decode(events).softmax(-1)
            event = torch.multinomial(probabilities, 1)
            events = torch.cat([events, event], dim=-1)
            if event.item() == END:
                break
        return events


def prior(i: int) -> torch.Tensor:
    g = generator(i)
    return torch.randint(1, EVENTS, (1, 3), generator=g)


def program() -> Program:
    model = MusicTransformer().eval()
    with torch.no_grad():
        model.fc.bias[END] += 1.5

    @torch.no_grad()
    def compose(events: torch.Tensor) -> torch.Tensor:
        return model(events)

    return Program(model, compose, prior)
