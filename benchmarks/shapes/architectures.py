"""Twenty networks, and inputs of ten shapes for each: batch, sequence length, image size, points, edges.

Key types: Architecture, ARCHITECTURES.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

SHAPES = 10
_WORDS = 50


@dataclass(frozen=True)
class Architecture:
    """``build()`` is the network; ``inputs(i)`` are the arguments of shape ``i``, of ``SHAPES``."""

    build: Callable[[], nn.Module]
    inputs: Callable[[int], tuple[Any, ...]]


# -- images -------------------------------------------------------------------------------------------------------------


def _image(i: int, batch: int = 2, step: int = 8) -> tuple[Tensor]:
    return (torch.randn(batch, 3, 32 + step * i, 32 + step * (i % 3)),)


class _Residual(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels)
        self.conv2, self.norm2 = nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels)

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.norm1(self.conv1(x)))
        x = F.relu(x + self.norm2(self.conv2(y)))
        return x


def _resnet() -> nn.Module:
    body = [_Residual(16), nn.Conv2d(16, 32, 3, stride=2, padding=1), _Residual(32)]
    return nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), *body, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))


def _vgg() -> nn.Module:
    layers: list[nn.Module] = []
    for before, after in ((3, 16), (16, 32), (32, 32)):
        layers += [nn.Conv2d(before, after, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(128, 10))


class _Inverted(nn.Module):
    """MobileNet's block, with EfficientNet's squeeze and excitation."""

    def __init__(self, channels: int, squeezes: bool) -> None:
        super().__init__()
        inner = 4 * channels
        self.widen, self.depthwise = nn.Conv2d(channels, inner, 1), nn.Conv2d(inner, inner, 3, padding=1, groups=inner)
        self.narrow, self.norm = nn.Conv2d(inner, channels, 1), nn.BatchNorm2d(channels)
        self.squeeze = nn.Sequential(nn.Linear(inner, 8), nn.SiLU(), nn.Linear(8, inner), nn.Sigmoid()) if squeezes else None

    def forward(self, x: Tensor) -> Tensor:
        y = F.hardswish(self.depthwise(F.hardswish(self.widen(x))))
        if self.squeeze is not None:
            y = y * self.squeeze(y.mean((2, 3)))[:, :, None, None]
        x = x + self.norm(self.narrow(y))
        return x


def _mobilenet(squeezes: bool = False) -> nn.Module:
    blocks = [_Inverted(16, squeezes) for _ in range(2)]
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=2, padding=1), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10)
    )


class _Dense(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv2d(3 + 8 * n, 8, 3, padding=1) for n in range(4))
        self.head = nn.Linear(35, 10)

    def forward(self, x: Tensor) -> Tensor:
        parts = [x]
        for conv in self.convs:
            parts.append(F.relu(conv(torch.cat(parts, 1))))
        found: Tensor = self.head(torch.cat(parts, 1).mean((2, 3)))
        return found


class _UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down1, self.down2 = nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(16, 32, 3, padding=1)
        self.up, self.out = nn.Conv2d(48, 16, 3, padding=1), nn.Conv2d(16, 3, 1)

    def forward(self, x: Tensor) -> Tensor:
        first = F.relu(self.down1(x))
        second = F.relu(self.down2(F.max_pool2d(first, 2)))
        grown = F.interpolate(second, size=first.shape[-2:], mode="nearest")
        found: Tensor = self.out(F.relu(self.up(torch.cat([first, grown], 1))))
        return found


class _ConvNeXt(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem, self.depthwise = nn.Conv2d(3, 24, 4, stride=4), nn.Conv2d(24, 24, 7, padding=3, groups=24)
        self.norm, self.mlp = nn.LayerNorm(24), nn.Sequential(nn.Linear(24, 96), nn.GELU(), nn.Linear(96, 24))
        self.head = nn.Linear(24, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        x = x + self.mlp(self.norm(self.depthwise(x).permute(0, 2, 3, 1))).permute(0, 3, 1, 2)
        found: Tensor = self.head(x.mean((2, 3)))
        return found


class _ViT(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patches, self.place = nn.Conv2d(3, 32, 8, stride=8), nn.Parameter(torch.randn(1, 16, 32))
        self.body = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, 0.0, batch_first=True), 2)
        self.head = nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2) + self.place
        found: Tensor = self.head(self.body(x).mean(1))
        return found


class _Autoencoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encode, self.decode = (
            nn.Sequential(nn.Linear(64, 48), nn.ReLU()),
            nn.Sequential(nn.Linear(16, 64), nn.Sigmoid()),
        )
        self.mean, self.spread = nn.Linear(48, 16), nn.Linear(48, 16)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        hidden = self.encode(x.view(x.shape[0], -1))
        mean, spread = self.mean(hidden), self.spread(hidden)
        divergence = -0.5 * (1 + spread - mean.pow(2) - spread.exp()).sum() / x.shape[0]
        return self.decode(mean + 0.1 * torch.exp(0.5 * spread)), divergence


# -- sequences ----------------------------------------------------------------------------------------------------------


def _words(i: int, batch: int = 3) -> tuple[Tensor]:
    return (torch.randint(_WORDS, (batch, 5 + 3 * i)),)


class _Recurrent(nn.Module):
    def __init__(self, kind: type[nn.RNNBase]) -> None:
        super().__init__()
        self.embed, self.cells = nn.Embedding(_WORDS, 32), kind(32, 32, batch_first=True)  # type: ignore[call-arg,arg-type]
        self.out = nn.Linear(32, _WORDS)

    def forward(self, words: Tensor) -> Tensor:
        states, _ = self.cells(self.embed(words))
        found: Tensor = self.out(states)
        return found


class _Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.size()
        q, k, v = self.qkv(self.norm1(x)).split(width, dim=2)
        q, k, v = (part.view(batch, length, self.heads, width // self.heads).transpose(1, 2) for part in (q, k, v))
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.project(attended.transpose(1, 2).contiguous().view(batch, length, width))
        x = x + self.mlp(self.norm2(x))
        return x


class _GPT(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.place = nn.Embedding(_WORDS, 32), nn.Embedding(64, 32)
        self.blocks = nn.ModuleList(_Block(32, 4) for _ in range(2))
        self.head = nn.Linear(32, _WORDS)

    def forward(self, words: Tensor) -> Tensor:
        x = self.embed(words) + self.place(torch.arange(words.size(1), device=words.device))
        for block in self.blocks:
            x = block(x)
        found: Tensor = F.cross_entropy(self.head(x[:, :-1]).flatten(0, 1), words[:, 1:].flatten())
        return found


class _Encoder(nn.Module):
    """With a padding mask, made from the sentences' lengths."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(_WORDS, 32)
        self.body = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(32, 4, 64, 0.0, batch_first=True), 2, enable_nested_tensor=False
        )

    def forward(self, words: Tensor, lengths: Tensor) -> Tensor:
        padding = torch.arange(words.shape[1])[None, :] >= lengths[:, None]
        states = self.body(self.embed(words), src_key_padding_mask=padding)
        found: Tensor = (states * ~padding[:, :, None]).sum(1) / lengths[:, None]
        return found


class _Translator(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.out = nn.Embedding(_WORDS, 32), nn.Linear(32, _WORDS)
        self.body = nn.Transformer(32, 4, 1, 1, 64, 0.0, batch_first=True)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        found: Tensor = self.out(self.body(self.embed(source), self.embed(target), tgt_mask=mask, tgt_is_causal=True))
        return found


class _Temporal(nn.Module):
    """Dilated causal convolutions, as in WaveNet."""

    def __init__(self) -> None:
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv1d(8, 8, 2, dilation=2**n) for n in range(4))

    def forward(self, x: Tensor) -> Tensor:
        for n, conv in enumerate(self.convs):
            x = x + torch.tanh(conv(F.pad(x, (2**n, 0))))
        return x


def _audio() -> nn.Module:
    layers: list[nn.Module] = []
    for before, after in ((1, 16), (16, 16), (16, 16)):
        layers += [nn.Conv1d(before, after, 8, stride=4), nn.GroupNorm(4, after), nn.GELU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(16, 4))


# -- sets and graphs ----------------------------------------------------------------------------------------------------


class _Points(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.each = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 64))
        self.all = nn.Linear(64, 10)

    def forward(self, points: Tensor) -> Tensor:
        found: Tensor = self.all(self.each(points).amax(1))
        return found


class _Messages(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.message, self.update = nn.Linear(32, 16), nn.GRUCell(16, 16)

    def forward(self, nodes: Tensor, edges: Tensor) -> Tensor:
        source, target = edges
        for _ in range(2):
            sent = F.relu(self.message(torch.cat([nodes[source], nodes[target]], 1)))
            nodes = self.update(torch.zeros_like(nodes).index_add(0, target, sent), nodes)
        return nodes


def _graph(i: int) -> tuple[Tensor, Tensor]:
    nodes = 6 + 2 * i
    return torch.randn(nodes, 16), torch.randint(nodes, (2, 15 + 7 * i))


# -- of transformers ----------------------------------------------------------------------------------------------------


class _LossOf(nn.Module):
    """A model of transformers that is its own labels' judge."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, words: Tensor) -> Tensor:
        found: Tensor = self.model(input_ids=words, labels=words).loss
        return found


def _llama() -> nn.Module:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=_WORDS, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=64, use_cache=False,
    )  # fmt: skip
    return _LossOf(LlamaForCausalLM(config))


def _t5() -> nn.Module:
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(
        vocab_size=_WORDS, d_model=32, d_kv=8, d_ff=64, num_layers=1, num_heads=4, dropout_rate=0.0, use_cache=False
    )
    config.decoder_start_token_id = 0
    return _LossOf(T5ForConditionalGeneration(config))


ARCHITECTURES: dict[str, Architecture] = {
    "mlp": Architecture(
        lambda: nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 8)), lambda i: (torch.randn(4 + 3 * i, 16),)
    ),
    "resnet": Architecture(_resnet, _image),
    "vgg": Architecture(_vgg, _image),
    "mobilenet": Architecture(_mobilenet, lambda i: _image(i, batch=2 + i)),
    "efficientnet": Architecture(lambda: _mobilenet(squeezes=True), _image),
    "densenet": Architecture(_Dense, lambda i: _image(i, batch=3 + i % 4)),
    "unet": Architecture(_UNet, _image),
    "convnext": Architecture(_ConvNeXt, _image),
    "vit": Architecture(_ViT, lambda i: (torch.randn(2 + i, 3, 32, 32),)),
    "autoencoder": Architecture(_Autoencoder, lambda i: (torch.rand(3 + 2 * i, 8, 8),)),
    "lstm": Architecture(lambda: _Recurrent(nn.LSTM), lambda i: _words(i, batch=2 + i)),
    "gru": Architecture(lambda: _Recurrent(nn.GRU), _words),
    "gpt": Architecture(_GPT, _words),
    "encoder": Architecture(_Encoder, lambda i: (*_words(i), torch.tensor([5 + 3 * i, 4 + i, 2]))),
    "translator": Architecture(_Translator, lambda i: (*_words(i), *_words((3 * i) % SHAPES))),
    "temporal": Architecture(_Temporal, lambda i: (torch.randn(2, 8, 20 + 5 * i),)),
    "audio": Architecture(_audio, lambda i: (torch.randn(2, 1, 400 + 100 * i),)),
    "points": Architecture(_Points, lambda i: (torch.randn(3, 16 + 8 * i, 3),)),
    "messages": Architecture(_Messages, _graph),
    "llama": Architecture(_llama, lambda i: _words(i, batch=2 + i)),
    "t5": Architecture(_t5, _words),
}
