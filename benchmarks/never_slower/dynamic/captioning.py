"""Captions pictures word by word until every caption has ended: a loop with a decision on data at each word.

python captioning.py --steps 200
"""

import argparse

import torch
from torch import nn

VOCABULARY, WIDTH, LONGEST, END = 200, 128, 24, 0


class Captioner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.look = nn.Sequential(
            nn.Conv2d(3, 16, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(16, WIDTH, 3, stride=2, padding=1), nn.ReLU()
        )
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.cell = nn.LSTMCell(2 * WIDTH, WIDTH)
        self.out = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, pictures: torch.Tensor) -> list[torch.Tensor]:
        features = self.look(pictures).flatten(2).transpose(1, 2)
        hidden = features.mean(1)
        memory = torch.zeros_like(hidden)
        word = torch.full((pictures.shape[0],), 2)
        ended = torch.zeros(pictures.shape[0], dtype=torch.bool)
        caption = []
        for _ in range(LONGEST):
            weights = torch.softmax((features * hidden.unsqueeze(1)).sum(-1), -1)
            seen = (weights.unsqueeze(-1) * features).sum(1)
            hidden, memory = self.cell(torch.cat([self.embed(word), seen], -1), (hidden, memory))
            word = self.out(hidden).argmax(-1)
            caption.append(word)
            ended |= word % 41 == END
            if ended.all():
                break
        return caption


@torch.no_grad()
def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    args = parser.parse_args()
    torch.manual_seed(0)
    model = Captioner().eval()
    words = 0
    for _ in range(args.steps):
        words += len(model(torch.randn(8, 3, 32, 32)))
    print(f"{words} words")


if __name__ == "__main__":
    main()
