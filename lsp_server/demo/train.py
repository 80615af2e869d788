"""Train a small character model on sentences that this script makes itself: `python train.py`, some seconds on a CPU.

One line of `forward` keeps the model from being a graph. `magpy-lsp check train.py` names it and says why.
"""

import random
import time

import torch
from torch import Tensor, nn
from torch.nn import functional as F

STEPS, BATCH, LENGTH, WIDTH = 300, 32, 32, 96
LIMIT = 15.0


def make_text(sentences: int) -> str:
    """Sentences such as "the small cat sees a red bird.", always the same ones."""
    choose = random.Random(7).choice
    nouns, verbs = ["cat", "dog", "bird", "fish", "fox"], ["sees", "finds", "follows", "likes"]
    adjectives = ["small", "red", "old", "quick"]
    parts = [["the", "a"], adjectives, nouns, verbs, ["the", "a"], adjectives, nouns]
    return " ".join(" ".join(choose(words) for words in parts) + "." for _ in range(sentences))


class CharModel(nn.Module):
    """Predicts the next character from the ones before it."""

    def __init__(self, characters: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(characters, WIDTH)
        self.position = nn.Embedding(LENGTH, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.mix = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))
        self.head = nn.Linear(WIDTH, characters)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embed(ids) + self.position.weight[: ids.shape[1]]
        q, k, v = self.qkv(self.norm(x)).chunk(3, dim=-1)
        x = x + F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.mix(x)
        logits: Tensor = self.head(x)
        if max(logits.abs().flatten().tolist()) > LIMIT:
            logits = logits.clamp(-LIMIT, LIMIT)
        return logits


def main() -> None:
    torch.manual_seed(0)
    text = make_text(2000)
    alphabet = sorted(set(text))
    data = torch.tensor([alphabet.index(character) for character in text])
    model = CharModel(len(alphabet))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    start = time.perf_counter()
    for step in range(STEPS):
        starts = torch.randint(len(data) - LENGTH, (BATCH, 1))
        batch = data[starts + torch.arange(LENGTH + 1)]
        logits = model(batch[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0 or step == STEPS - 1:
            print(f"step {step:3d}  loss {loss.item():.3f}")
    print(f"{STEPS} steps in {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
