"""The generate method of a small GPT with a key-value cache: one token at a time, greedy when sure and sampled when not."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.programs.dynamic.program import Program, generator

WORDS, STOP, CONTEXT, WIDTH, HEADS = 120, 0, 14, 128, 4

Cache = tuple[torch.Tensor, torch.Tensor]


class CachedAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.cache: Cache | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        if self.cache is None:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            k, v = torch.cat([self.cache[0], k], dim=2), torch.cat([self.cache[1], v], dim=2)
            y = F.scaled_dot_product_attention(q, k, v)
        self.cache = (k, v)
        return self.out(y.transpose(1, 2).reshape(batch, length, WIDTH))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.ln_1, self.attn, self.ln_2 = nn.LayerNorm(WIDTH), CachedAttention(), nn.LayerNorm(WIDTH)
        self.fc1, self.fc2 = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.fc2(F.gelu(self.fc1(self.ln_2(x))))


class Generator(nn.Module):
    def __init__(self, layers: int = 2) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(WORDS, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS)

    def logits(self, tokens: torch.Tensor, start: int) -> torch.Tensor:
        x = self.tokens(tokens) + self.positions.weight[start : start + tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x[:, -1]))

    def forward(self, prompt: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            block.attn.cache = None
        tokens, new, start = prompt, prompt, 0
        while tokens.shape[1] < CONTEXT:
            probabilities = self.logits(new, start).softmax(-1)
            start = tokens.shape[1]
            best, new = probabilities.max(-1, keepdim=True)
            if best.item() < 0.3:
                new = torch.multinomial(probabilities, 1)
            tokens = torch.cat([tokens, new], dim=1)
            if new.item() == STOP:
                break
        return tokens


def prompt(i: int) -> torch.Tensor:
    g = generator(i)
    return torch.randint(1, WORDS, (1, 3 + i % 3), generator=g)


def program() -> Program:
    model = Generator().eval()
    with torch.no_grad():
        model.head.weight.mul_(3)
        model.head.bias[STOP] = 2.5

    @torch.no_grad()
    def generate(tokens: torch.Tensor) -> torch.Tensor:
        return model(tokens)

    return Program(model, generate, prompt)
