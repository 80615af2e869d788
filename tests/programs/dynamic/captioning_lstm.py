"""Show and tell: an LSTM captions a picture greedily, word by word, until it says the end token."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.swa_utils import update_bn

from tests.programs.dynamic.program import Program, generator

WORDS, START, END, LONGEST = 400, 1, 2, 20


class Encoder(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.convs = nn.Sequential(
            nn.Conv2d(3, 16, 3, 2, 1),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, 2, 1),
            nn.ReLU(),
            nn.Conv2d(32, 64, 3, 2, 1),
            nn.ReLU(),
        )
        self.linear = nn.Linear(64, width)
        self.bn = nn.BatchNorm1d(width)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.bn(self.linear(self.convs(images).mean((2, 3))))


class Captioner(nn.Module):
    def __init__(self, width: int = 192) -> None:
        super().__init__()
        self.encoder = Encoder(width)
        self.embed = nn.Embedding(WORDS, width)
        self.lstm = nn.LSTM(width, width, num_layers=2, batch_first=True)
        self.linear = nn.Linear(width, WORDS)

    def forward(self, image: torch.Tensor) -> list[int]:
        inputs = self.encoder(image).unsqueeze(1)
        _, states = self.lstm(inputs)
        word, caption = START, []
        for _ in range(LONGEST):
            inputs = self.embed(torch.tensor([[word]]))
            hiddens, states = self.lstm(inputs, states)
            word = self.linear(hiddens.squeeze(1)).argmax(1).item()
            if word == END:
                break
            caption.append(word)
        return caption


def image(i: int) -> torch.Tensor:
    g = generator(i)
    return F.interpolate(torch.randn(1, 3, 6, 6, generator=g), size=64, mode="bilinear") * 2


def program() -> Program:
    model = Captioner()
    with torch.no_grad():
        update_bn([torch.cat([image(-1 - i) for i in range(32)])], model.encoder)
        model.embed.weight.mul_(2)
        for weights in model.lstm.parameters():
            weights.mul_(2)
        model.linear.weight[END] *= 3
    model.eval()

    @torch.no_grad()
    def caption(x: torch.Tensor) -> list[int]:
        return model(x)

    return Program(model, caption, image)
