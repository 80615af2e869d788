"""Beam search over a GRU decoder: hypotheses are Python objects that end at different lengths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from tests.programs.dynamic.program import Program, generator

WORDS, START, END, LONGEST = 200, 1, 2, 12


@dataclass
class Hypothesis:
    words: list[int]
    score: float
    state: torch.Tensor

    def normalized(self) -> float:
        return self.score / len(self.words) ** 0.7


class Translator(nn.Module):
    def __init__(self, width: int = 128) -> None:
        super().__init__()
        self.embed = nn.Embedding(WORDS, width)
        self.encoder = nn.GRU(width, width, batch_first=True)
        self.decoder = nn.GRUCell(width, width)
        self.out = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, WORDS))

    def encode(self, source: torch.Tensor) -> torch.Tensor:
        return self.encoder(self.embed(source))[1][0, 0]

    def forward(self, words: torch.Tensor, states: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        states = self.decoder(self.embed(words), states)
        return torch.log_softmax(self.out(states), -1), states


class BeamSearch(nn.Module):
    def __init__(self, translator: nn.Module, width: int = 4) -> None:
        super().__init__()
        self.translator, self.width = translator, width

    def forward(self, source: torch.Tensor) -> tuple[list[int], float]:
        beams = [Hypothesis([START], 0.0, self.translator.encode(source))]
        ended: list[Hypothesis] = []
        for _ in range(LONGEST):
            words = torch.tensor([beam.words[-1] for beam in beams])
            log_p, states = self.translator(words, torch.stack([beam.state for beam in beams]))
            scores, choices = log_p.topk(self.width, dim=-1)
            candidates = []
            for beam, state, row, next_words in zip(beams, states, scores.tolist(), choices.tolist(), strict=True):
                for score, word in zip(row, next_words, strict=True):
                    candidates.append(Hypothesis([*beam.words, word], beam.score + score, state))
            candidates.sort(key=lambda candidate: candidate.score, reverse=True)
            beams = []
            for candidate in candidates[: self.width]:
                if candidate.words[-1] == END:
                    ended.append(candidate)
                else:
                    beams.append(candidate)
            if not beams or (ended and max(e.normalized() for e in ended) > beams[0].normalized()):
                break
        best = max(ended or beams, key=Hypothesis.normalized)
        return best.words, best.score


def source(i: int) -> torch.Tensor:
    g = generator(i)
    return torch.randint(3, WORDS, (1, 12), generator=g)


def program() -> Program:
    model = BeamSearch(Translator()).eval()
    with torch.no_grad():
        model.translator.embed.weight.mul_(1.5)
        model.translator.out[-1].weight.mul_(8)
        model.translator.out[-1].bias[END] = 1.2

    @torch.no_grad()
    def translate(x: torch.Tensor) -> Any:
        return model(x)

    return Program(model, translate, source)
