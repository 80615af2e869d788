"""Show, attend and tell: a decoder that attends to parts of the pictures; a batch goes on until all captions have ended."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.programs.dynamic.program import Program, generator

WORDS, PAD, START, END, LONGEST = 300, 0, 1, 2, 18


class Attention(nn.Module):
    def __init__(self, features: int, hidden: int, inner: int) -> None:
        super().__init__()
        self.of_features = nn.Linear(features, inner)
        self.of_hidden = nn.Linear(hidden, inner)
        self.score = nn.Linear(inner, 1)

    def forward(self, features: torch.Tensor, hidden: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        scores = self.score(torch.tanh(self.of_features(features) + self.of_hidden(hidden).unsqueeze(1)))
        alpha = F.softmax(scores.squeeze(2), dim=1)
        return (features * alpha.unsqueeze(2)).sum(1), alpha


class AttentionCaptioner(nn.Module):
    def __init__(self, features: int = 64, width: int = 128) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(3, 32, 5, 2, 2), nn.ReLU(), nn.Conv2d(32, features, 3, 2, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(6)
        )
        self.attention = Attention(features, width, 64)
        self.embedding = nn.Embedding(WORDS, width)
        self.init_h, self.init_c = nn.Linear(features, width), nn.Linear(features, width)
        self.gate = nn.Linear(width, features)
        self.cell = nn.LSTMCell(width + features, width)
        self.fc = nn.Linear(width, WORDS)

    def forward(self, images: torch.Tensor) -> tuple[torch.Tensor, list[torch.Tensor]]:
        features = self.encoder(images).flatten(2).transpose(1, 2)
        mean = features.mean(1)
        h, c = self.init_h(mean), self.init_c(mean)
        word = torch.full((len(images),), START)
        done = torch.zeros(len(images), dtype=torch.bool)
        words, alphas = [], []
        while len(words) < LONGEST and not done.all():
            context, alpha = self.attention(features, h)
            context = torch.sigmoid(self.gate(h)) * context
            h, c = self.cell(torch.cat([self.embedding(word), context], 1), (h, c))
            word = self.fc(h).argmax(1)
            if done.any():
                word = torch.where(done, PAD, word)
            done = done | (word == END)
            words.append(word)
            alphas.append(alpha)
        return torch.stack(words, 1), alphas


def images(i: int) -> torch.Tensor:
    g = generator(i)
    return F.interpolate(torch.randn(4, 3, 6, 6, generator=g), size=48, mode="bilinear") * 3


def program() -> Program:
    model = AttentionCaptioner().eval()
    with torch.no_grad():
        model.embedding.weight.mul_(2)
        model.init_h.weight.mul_(6)
        model.fc.bias[END] = 0.3

    @torch.no_grad()
    def caption(x: torch.Tensor) -> tuple[torch.Tensor, list[torch.Tensor]]:
        return model(x)

    return Program(model, caption, images)
