"""Samples from a small GPT without a cache: temperature, top-k or nucleus, until a stop token; the model is compiled."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.programs.dynamic.program import Program, generator

WORDS, STOP, CONTEXT, WIDTH, HEADS = 120, 0, 20, 96, 4


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.c_attn, self.c_proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(approximate="tanh"), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        q, k, v = self.c_attn(self.ln_1(x)).split(WIDTH, dim=2)
        q, k, v = (t.view(batch, length, HEADS, -1).transpose(1, 2) for t in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.c_proj(y.transpose(1, 2).contiguous().view(batch, length, WIDTH))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, layers: int = 3) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(WORDS, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.h = nn.ModuleList(Block() for _ in range(layers))
        self.ln_f = nn.LayerNorm(WIDTH)
        self.lm_head = nn.Linear(WIDTH, WORDS)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        positions = torch.arange(tokens.size(1), device=tokens.device)
        x = self.wte(tokens) + self.wpe(positions)
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x[:, -1]))


def pick(logits: torch.Tensor, nucleus: bool) -> torch.Tensor:
    if nucleus:
        probabilities, order = logits.softmax(-1).sort(descending=True)
        keep = probabilities.cumsum(-1) - probabilities < 0.8
        choice = torch.multinomial(probabilities * keep, 1)
        return order.gather(-1, choice)
    top, _ = torch.topk(logits, 10)
    logits = logits.masked_fill(logits < top[:, -1:], -torch.inf)
    return torch.multinomial(logits.softmax(-1), 1)


def prompt(i: int) -> tuple[torch.Tensor, bool]:
    g = generator(i)
    return torch.randint(1, WORDS, (1, 2 + i % 4), generator=g), i % 2 == 0


def program() -> Program:
    model = GPT().eval()
    with torch.no_grad():
        model.lm_head.weight.mul_(2)
        model.lm_head.bias[STOP] = 2.2

    @torch.no_grad()
    def sample(request: tuple[torch.Tensor, bool]) -> list[int]:
        tokens, nucleus = request
        while tokens.shape[1] < CONTEXT:
            logits = model(tokens) / 0.9
            token = pick(logits, nucleus)
            if token.item() == STOP:
                break
            tokens = torch.cat([tokens, token], dim=1)
        return tokens[0].tolist()

    return Program(model, sample, prompt)
