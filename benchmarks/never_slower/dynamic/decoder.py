"""Trains a sequence-to-sequence model whose decoder decides on data: it stops early and feeds back what it is sure of.

python decoder.py --steps 200
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F

VOCABULARY, WIDTH, LENGTH, END = 64, 96, 14, 1


class Decoder(nn.Module):
    """A GRU cell that is unrolled in Python."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.encode = nn.GRU(WIDTH, WIDTH, batch_first=True)
        self.cell = nn.GRUCell(WIDTH, WIDTH)
        self.out = nn.Linear(WIDTH, VOCABULARY)
        self.fed_back = 0

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        _, state = self.encode(self.embed(source))
        hidden, token, outputs = state[0], target[:, 0], []
        for position in range(1, target.shape[1]):
            hidden = self.cell(self.embed(token), hidden)
            logits = self.out(hidden)
            outputs.append(logits)
            if logits.softmax(-1).amax(-1).mean() > 0.6:  # sure of itself: its own word goes on
                token = logits.argmax(-1)
                self.fed_back += 1
            else:
                token = target[:, position]
            if bool((token == END).all()):
                break
        return torch.stack(outputs, 1)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    args = parser.parse_args()
    torch.manual_seed(0)
    model = Decoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for step in range(args.steps):
        source = torch.randint(2, VOCABULARY, (32, LENGTH))
        target = torch.cat([source.flip(1), torch.full((32, 1), END)], 1)
        logits = model(source, target)
        loss = F.cross_entropy(logits.flatten(0, 1), target[:, 1 : logits.shape[1] + 1].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.3f}, fed back {model.fed_back}")


if __name__ == "__main__":
    main()
