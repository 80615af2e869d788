"""The training steps that are measured: each is a model with its optimizers and one batch. Key: PROGRAMS, Program."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from benchmarks.models import CharGPT


class Program:
    """A training step, with its parts named so that ``torch.compile`` can be given each of them.

    ``models`` and ``steps`` are what ``step`` calls: a contender may replace them with compiled ones."""

    def __init__(self, models: dict[str, nn.Module], optimizers: dict[str, torch.optim.Optimizer]) -> None:
        self.modules = models
        self.models: dict[str, Callable[..., Any]] = dict(models)
        self.optimizers = optimizers
        self.steps: dict[str, Callable[[], Any]] = {name: o.step for name, o in optimizers.items()}

    def step(self) -> Any:
        raise NotImplementedError

    def parameters(self) -> list[torch.Tensor]:
        return [p for module in self.modules.values() for p in module.parameters()]

    def train_step(self) -> Callable[[], Any]:
        """The step as a plain function."""

        def train_step() -> Any:
            return self.step()

        return train_step

    def to(self, device: torch.device | str, dtype: torch.dtype | None = None) -> Program:
        """Itself, with modules and batch on that device, before the first step; ``dtype``: of what is floating-point."""
        for module in self.modules.values():
            module.to(device=device, dtype=dtype)
        for name, value in vars(self._batch).items():
            if isinstance(value, torch.Tensor):
                setattr(self._batch, name, value.to(device=device, dtype=dtype if value.is_floating_point() else None))
        return self

    @property
    def _batch(self) -> Any:
        """The object that has the batch as attributes."""
        return self

    def compile_parts(self, compiler: Callable[[Any], Any]) -> None:
        """Compile models and optimizer steps one by one, as users do."""
        self.models = {name: compiler(module) for name, module in self.modules.items()}
        self.steps = {name: compiler(step) for name, step in self.steps.items()}


class Supervised(Program):
    """Model, loss of its output, backward, clipping, optimizer."""

    def __init__(
        self, model: nn.Module, optimizer: torch.optim.Optimizer, x: Any, y: Any, loss: Any, clip: float = 0
    ) -> None:
        super().__init__({"model": model}, {"optimizer": optimizer})
        self.x, self.y, self.loss, self.clip = x, y, loss, clip

    def step(self) -> torch.Tensor:
        self.optimizers["optimizer"].zero_grad(set_to_none=True)
        loss: torch.Tensor = self.loss(self.models["model"](self.x), self.y)
        loss.backward()
        if self.clip:
            torch.nn.utils.clip_grad_norm_(self.modules["model"].parameters(), self.clip)
        self.steps["optimizer"]()
        return loss.detach()


def _next_token_loss(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


class _GPTStep(Program):
    def __init__(self, **options: int) -> None:
        self.gpt = CharGPT(**options)
        super().__init__({"model": self.gpt.model}, {"optimizer": self.gpt.optimizer})

    @property
    def _batch(self) -> Any:
        return self.gpt

    def step(self) -> None:
        self.gpt.step(self.models["model"], self.steps["optimizer"])


class _Residual(nn.Module):
    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outside)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outside)
        self.skip = nn.Sequential()
        if stride != 1 or inside != outside:
            self.skip = nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(out)) + self.skip(x))


def resnet18(width: int = 32) -> nn.Module:
    """ResNet-18 for 32 x 32 images (He et al. 2015), ``width`` channels at first."""
    layers: list[nn.Module] = [nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
    inside = width
    for stage, stride in enumerate((1, 2, 2, 2)):
        outside = width << stage
        layers += [_Residual(inside, outside, stride), _Residual(outside, outside, 1)]
        inside = outside
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inside, 10))


class _LSTM(nn.Module):
    def __init__(self, vocabulary: int = 500, width: int = 128) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.cells = nn.LSTM(width, width, num_layers=2, batch_first=True)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.head(self.cells(self.embed(tokens))[0])
        return logits


class _ViT(nn.Module):
    """ViT-tiny's shape (Touvron et al. 2020), on 32 x 32 images."""

    def __init__(self, width: int = 96, depth: int = 6, heads: int = 3, patch: int = 4) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.position = nn.Parameter(torch.randn(1, (32 // patch) ** 2 + 1, width) * 0.02)
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, depth, nn.LayerNorm(width), enable_nested_tensor=False)
        self.head = nn.Linear(width, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], 1) + self.position
        logits: torch.Tensor = self.head(self.blocks(x)[:, 0])
        return logits


class _Checkpointed(nn.Module):
    """Residual blocks whose activations the backward pass computes again."""

    def __init__(self, width: int = 64, depth: int = 12) -> None:
        super().__init__()
        layers = (nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.blocks = nn.ModuleList([nn.Sequential(*copy.deepcopy(layers)) for _ in range(depth)])
        self.head = nn.Linear(width, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = x + checkpoint(block, x, use_reentrant=False)
        logits: torch.Tensor = self.head(x)
        return logits


def _double_conv(inside: int, outside: int) -> nn.Sequential:
    convs = ((inside, outside), (outside, outside))
    return nn.Sequential(*(part for a, b in convs for part in (nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU())))


class _UNet(nn.Module):
    """U-Net (Ronneberger et al. 2015), three levels."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.down = nn.ModuleList([_double_conv(3, width), _double_conv(width, 2 * width)])
        self.middle = _double_conv(2 * width, 4 * width)
        self.up = nn.ModuleList([nn.ConvTranspose2d(4 * width, 2 * width, 2, 2), nn.ConvTranspose2d(2 * width, width, 2, 2)])
        self.merge = nn.ModuleList([_double_conv(4 * width, 2 * width), _double_conv(2 * width, width)])
        self.head = nn.Conv2d(width, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = []
        for block in self.down:
            x = block(x)
            kept.append(x)
            x = F.max_pool2d(x, 2)
        x = self.middle(x)
        for up, merge in zip(self.up, self.merge, strict=True):
            x = merge(torch.cat([up(x), kept.pop()], 1))
        logits: torch.Tensor = self.head(x)
        return logits


class _GAN(Program):
    """Generator and discriminator (DCGAN's shape, Radford et al. 2015): two losses, two optimizers."""

    def __init__(self, noise: int = 64, width: int = 32, batch: int = 16) -> None:
        make = nn.Sequential(
            nn.ConvTranspose2d(noise, 2 * width, 4, 1, 0, bias=False), nn.BatchNorm2d(2 * width), nn.ReLU(),
            nn.ConvTranspose2d(2 * width, width, 4, 2, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.ConvTranspose2d(width, 3, 4, 2, 1, bias=False), nn.Tanh(),
        )  # fmt: skip
        judge = nn.Sequential(
            nn.Conv2d(3, width, 4, 2, 1, bias=False), nn.LeakyReLU(0.2),
            nn.Conv2d(width, 2 * width, 4, 2, 1, bias=False), nn.BatchNorm2d(2 * width), nn.LeakyReLU(0.2),
            nn.Conv2d(2 * width, 1, 4, 1, 0, bias=False), nn.Flatten(0),
        )  # fmt: skip
        optimizers: dict[str, torch.optim.Optimizer] = {
            name: torch.optim.Adam(net.parameters(), lr=2e-4, betas=(0.5, 0.999))
            for name, net in (("generator", make), ("discriminator", judge))
        }
        super().__init__({"generator": make, "discriminator": judge}, optimizers)
        self.real, self.noise = torch.rand(batch, 3, 16, 16) * 2 - 1, torch.randn(batch, noise, 1, 1)

    def step(self) -> tuple[torch.Tensor, torch.Tensor]:
        generator, discriminator = self.models["generator"], self.models["discriminator"]
        ones, zeros = self.real.new_ones(len(self.real)), self.real.new_zeros(len(self.real))
        self.optimizers["discriminator"].zero_grad()
        fake = generator(self.noise)
        loss_d = F.binary_cross_entropy_with_logits(discriminator(self.real), ones)
        loss_d = loss_d + F.binary_cross_entropy_with_logits(discriminator(fake.detach()), zeros)
        loss_d.backward()
        self.steps["discriminator"]()
        self.optimizers["generator"].zero_grad()
        loss_g = F.binary_cross_entropy_with_logits(discriminator(fake), ones)
        loss_g.backward()
        self.steps["generator"]()
        return loss_d.detach(), loss_g.detach()


def _supervised(
    make: Callable[[], nn.Module],
    make_optimizer: Callable[[Any], torch.optim.Optimizer],
    x: Any,
    y: Any,
    loss: Any,
    clip: float = 0,
) -> Supervised:
    model = make()
    return Supervised(model, make_optimizer(model.parameters()), x, y, loss, clip)


def _bert() -> Supervised:
    import logging

    logging.getLogger("transformers").setLevel(logging.ERROR)
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig(
        vocab_size=1000, hidden_size=128, num_hidden_layers=2, num_attention_heads=2, intermediate_size=512,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    model = BertForSequenceClassification(config)
    x, y = torch.randint(1000, (8, 64)), torch.randint(2, (8,))

    def loss(out: Any, y: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(out.logits, y)

    return Supervised(model, torch.optim.AdamW(model.parameters(), lr=1e-4), x, y, loss, 1.0)


def _adamw(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.AdamW(parameters, lr=1e-3)


def _sgd(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.05, momentum=0.9, weight_decay=5e-4)


def _images(n: int) -> torch.Tensor:
    return torch.randn(n, 3, 32, 32)


PROGRAMS: dict[str, Callable[[], Program]] = {
    "gpt_3": lambda: _GPTStep(batch_size=1, n_layer=3),
    "gpt_example": lambda: _GPTStep(batch_size=16),
    "resnet18": lambda: _supervised(resnet18, _sgd, _images(8), torch.randint(10, (8,)), F.cross_entropy),
    "lstm": lambda: _supervised(
        _LSTM, _adamw, torch.randint(500, (8, 32)), torch.randint(500, (8, 32)), _next_token_loss, 1.0
    ),
    "vit": lambda: _supervised(_ViT, _adamw, _images(8), torch.randint(10, (8,)), F.cross_entropy),
    "unet": lambda: _supervised(_UNet, _adamw, _images(4), torch.randint(2, (4, 32, 32)), F.cross_entropy),
    "gan": _GAN,
    "mlp": lambda: _supervised(
        lambda: nn.Sequential(
            nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10)
        ),
        _adamw, torch.randn(64, 64), torch.randint(10, (64,)), F.cross_entropy,
    ),
    "bert": _bert,
    "checkpointed": lambda: _supervised(
        _Checkpointed, _adamw, torch.randn(1024, 64), torch.randint(10, (1024,)), F.cross_entropy
    ),
}  # fmt: skip

#: Sizes that keep a GPU busy; the programs above mostly wait for launches there.
LARGE: dict[str, Callable[[], Program]] = {
    "vit_base": lambda: _supervised(
        lambda: _ViT(768, 12, 12), _adamw, _images(128), torch.randint(10, (128,)), F.cross_entropy, 1.0
    ),
    "resnet18_wide": lambda: _supervised(
        lambda: resnet18(64), _sgd, _images(256), torch.randint(10, (256,)), F.cross_entropy
    ),
    "gpt_12": lambda: _GPTStep(batch_size=16, n_layer=12, n_head=12, n_embd=768, block_size=256),
}  # fmt: skip
