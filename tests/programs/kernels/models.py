"""Parts of models, and whole steps with their backward passes and updates."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.programs.kernels.program import Case, leaf, program


class Block(nn.Module):
    """A block of GPT. ``fused``: attention by `scaled_dot_product_attention`."""

    mask: torch.Tensor

    def __init__(self, width: int, heads: int, fused: bool) -> None:
        super().__init__()
        self.heads, self.fused = heads, fused
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.into, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.register_buffer("mask", torch.ones(16, 16).tril().bool())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.out(self.attend(self.norm1(x)))
        result: torch.Tensor = x + self.mlp(self.norm2(x))
        return result

    def attend(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in self.into(x).split(width, 2))
        if self.fused:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
            y = scores.masked_fill(~self.mask[:length, :length], float("-inf")).softmax(-1) @ v
        return y.transpose(1, 2).reshape(batch, length, width)


@program(tolerance=(1e-4, 1e-4))
def block_of_gpt() -> Case:
    model = Block(24, 3, fused=False)
    return Case(lambda x: model(x), lambda i: (leaf(2, 10, 24),), {"model": model})


@program(tolerance=(1e-4, 1e-4))
def block_with_fused_attention() -> Case:
    model = Block(24, 3, fused=True)
    return Case(lambda x: model(x), lambda i: (leaf(2, 10, 24),), {"model": model})


@program(unsupported=("_scaled_dot_product_flash_attention", "Flash attention is an operator that ATen has only for CUDA."))
def flash_attention() -> Case:
    def region(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q * 2, k, v, is_causal=True)

    return Case(region, lambda i: tuple(leaf(2, 2, 6, 8, dtype=torch.bfloat16) for _ in range(3)))


@program(tolerance=(1e-4, 1e-4))
def attention_of_odd_width() -> Case:
    """Products and a softmax: no fused kernel accepts this width."""

    def region(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    return Case(region, lambda i: (leaf(2, 2, 6, 7), leaf(2, 2, 6, 7), leaf(2, 2, 6, 7)))


@program(tolerance=(1e-4, 1e-4))
def gated_mlp() -> Case:
    gate, up, down = nn.Linear(20, 30, bias=False), nn.Linear(20, 30, bias=False), nn.Linear(30, 20, bias=False)
    state = {"gate": gate, "up": up, "down": down}
    return Case(lambda x: down(F.silu(gate(x)) * up(x)), lambda i: (leaf(6, 20),), state)


def _step(optimizer_name: str) -> Case:
    model = nn.Sequential(nn.Linear(12, 20), nn.ReLU(), nn.LayerNorm(20), nn.Linear(20, 5))
    optimizer = getattr(torch.optim, optimizer_name)(model.parameters(), lr=0.01)

    def step(x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), labels)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Case(step, lambda i: (torch.randn(8, 12), torch.randint(0, 5, (8,))), {"model": model})


@program(tolerance=(1e-4, 1e-4))
def whole_step_with_sgd() -> Case:
    return _step("SGD")


@program(warm=2, tolerance=(1e-4, 1e-4))
def whole_step_with_adam() -> Case:
    return _step("AdamW")
