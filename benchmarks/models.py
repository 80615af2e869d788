"""The benchmarked models: deep and shallow MLPs, and the GPT of the char_gpt example with its training step."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


class MLP(nn.Module):
    """``depth`` linear layers in a ModuleList, with a ReLU called between them."""

    def __init__(self, depth: int, width: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x


def sequential(depth: int, width: int) -> nn.Sequential:
    """``depth`` linear layers, each followed by its own ReLU module."""
    return nn.Sequential(*(layer for _ in range(depth) for layer in (nn.Linear(width, width), nn.ReLU())))


def char_gpt_module() -> Any:
    """Imports examples/char_gpt/model.py from its folder."""
    path = EXAMPLES / "char_gpt" / "model.py"
    spec = importlib.util.spec_from_file_location("char_gpt_model", path)
    assert spec is not None and spec.loader is not None, path
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


class CharGPT:
    """The example's model, optimizer and one batch; a step calls the two regions through the given callables."""

    def __init__(self, batch_size: int = 16, **options: int) -> None:
        torch.manual_seed(0)
        source = char_gpt_module()
        self.model = source.GPT(source.GPTConfig(**options))
        self.optimizer = torch.optim.AdamW(self.model.parameter_groups(weight_decay=0.1), lr=1e-3)
        config = self.model.config
        tokens = torch.randint(config.vocab_size, (batch_size, config.block_size + 1))
        self.x, self.y = tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()

    def step(self, model: Callable[..., Any], optimizer_step: Callable[[], Any]) -> None:
        _, loss = model(self.x, self.y)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        optimizer_step()
