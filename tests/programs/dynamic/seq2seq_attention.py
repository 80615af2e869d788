"""Trains a sequence-to-sequence model with attention; random.random() decides whether the teacher's words are fed."""

from __future__ import annotations

import random

import torch
import torch.nn.functional as F
from torch import nn

from tests.programs.dynamic.program import Program, generator

WORDS, START, END = 120, 1, 2
TEACHER_FORCING = 0.5


class Encoder(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, width)
        self.gru = nn.GRU(width, width, batch_first=True)

    def forward(self, source: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.gru(self.embedding(source))


class AttentionDecoder(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, width)
        self.dropout = nn.Dropout(0.1)
        self.query = nn.Linear(width, width)
        self.combine = nn.Linear(2 * width, width)
        self.gru = nn.GRU(width, width, batch_first=True)
        self.out = nn.Linear(width, WORDS)

    def forward(
        self, word: torch.Tensor, hidden: torch.Tensor, encoded: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        embedded = self.dropout(self.embedding(word)).unsqueeze(1)
        weights = F.softmax(torch.bmm(self.query(hidden[-1]).unsqueeze(1), encoded.transpose(1, 2)), dim=-1)
        context = torch.bmm(weights, encoded)
        output, hidden = self.gru(F.relu(self.combine(torch.cat([embedded, context], -1))), hidden)
        return F.log_softmax(self.out(output.squeeze(1)), dim=-1), hidden, weights


class Seq2Seq(nn.Module):
    def __init__(self, width: int = 96) -> None:
        super().__init__()
        self.encoder, self.decoder = Encoder(width), AttentionDecoder(width)

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        encoded, hidden = self.encoder(source)
        word = torch.full((len(source),), START)
        loss = torch.zeros(())
        use_teacher_forcing = random.random() < TEACHER_FORCING
        for t in range(target.shape[1]):
            output, hidden, _ = self.decoder(word, hidden, encoded)
            loss = loss + F.nll_loss(output, target[:, t])
            if use_teacher_forcing:
                word = target[:, t]
            else:
                word = output.argmax(1).detach()
                if (word == END).all():
                    break
        return loss / (t + 1)


def pairs(i: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The task: reverse a sequence. The batches have one of three lengths."""
    g = generator(i)
    length = (6, 8, 10)[i % 3]
    source = torch.randint(3, WORDS, (8, length), generator=g)
    return source, torch.cat([source.flip(1), torch.full((8, 1), END)], 1)


def program() -> Program:
    model = Seq2Seq()
    with torch.no_grad():
        model.decoder.out.bias[END] += 0.4  # untrained, it ends early at times
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def train(pair: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        optimizer.zero_grad()
        loss = model(*pair)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.detach()

    return Program(model, train, pairs, trains=True)
