"""An architecture of the sweep: a model class of transformers, a tiny configuration, and inputs for a call.

Key types: Architecture; key functions: tiny, and one function per kind of input (``text``, ``causal``, ``image`` ...).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

Inputs = Callable[[Any], dict[str, Any]]
"""Fresh keyword arguments of a call, from the model's configuration."""

BATCH, LENGTH, SIDE, FRAMES = 2, 16, 32, 2

# Set in every configuration with a parameter of that name; an architecture's own values take precedence.
SMALL: dict[str, Any] = {
    "vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48,
    "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 64, "type_vocab_size": 2, "embedding_size": 16,
    "n_positions": 64, "n_ctx": 64, "n_embd": 32, "n_layer": 2, "n_head": 4, "dff": 48, "dim": 32, "hidden_dim": 48,
    "n_layers": 2, "n_heads": 4, "num_layers": 2, "num_heads": 4, "d_model": 32, "d_kv": 8, "d_ff": 48,
    "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "ffn_dim": 48, "num_decoder_layers": 2, "num_encoder_layers": 2,
    "num_encoder_attention_heads": 4, "num_decoder_attention_heads": 4, "projection_dim": 24, "d_inner": 48,
    "image_size": SIDE, "patch_size": 8, "num_experts_per_tok": 2, "num_local_experts": 4, "num_experts": 4,
    "moe_intermediate_size": 32, "attention_window": 4, "block_size": 4, "num_buckets": 8,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1, "sep_token_id": 2,
}  # fmt: skip


@dataclass(frozen=True)
class Architecture:
    """``model``: a class of transformers. ``config``: its settings in addition to SMALL, with dicts for its parts."""

    name: str
    model: str
    inputs: Inputs
    config: dict[str, Any] = field(default_factory=dict)
    kind: str = ""

    def build(self) -> torch.nn.Module:
        import transformers

        cls = getattr(transformers, self.model)
        module: torch.nn.Module = cls(tiny(cls.config_class, self.config))
        return module

    def call(self, module_config: Any) -> tuple[list[Any], dict[str, Any]]:
        return [], self.inputs(module_config)


def tiny(config_class: Any, own: dict[str, Any]) -> Any:
    """A configuration with SMALL in it and its parts; a part without a fixed class has a ``model_type``."""
    import transformers

    values = {name: value for name, value in SMALL.items() if name in config_class.__dataclass_fields__}
    for name, part in getattr(config_class, "sub_configs", {}).items():
        if own.get(name, 0) is None:
            continue
        settings = dict(own.get(name, {}))
        if part is transformers.AutoConfig:
            if "model_type" not in settings:
                continue
            part = transformers.CONFIG_MAPPING[settings.pop("model_type")]
        values[name] = tiny(part, settings)
    values |= {name: value for name, value in own.items() if name not in values or not isinstance(value, dict)}
    return config_class(**values)


# -- inputs ----------------------------------------------------------------------------------------------------


def ids(config: Any, length: int = LENGTH, batch: int = BATCH) -> torch.Tensor:
    """Random tokens, none of them one of the special ones."""
    return torch.randint(5, 90, (batch, length))


def padding(length: int = LENGTH, batch: int = BATCH) -> torch.Tensor:
    """An attention mask: the last row is padded at its end."""
    mask = torch.ones(batch, length, dtype=torch.long)
    mask[-1, -3:] = 0
    return mask


def text(config: Any) -> dict[str, Any]:
    return {"input_ids": ids(config), "attention_mask": padding()}


def labelled(config: Any) -> dict[str, Any]:
    """For language models of either kind: a label a token."""
    return {**text(config), "labels": ids(config)}


def classified(config: Any) -> dict[str, Any]:
    return {**text(config), "labels": torch.randint(0, 2, (BATCH,))}


def unmasked(config: Any) -> dict[str, Any]:
    return {"input_ids": ids(config), "labels": ids(config)}


def answered(config: Any) -> dict[str, Any]:
    """For question answering."""
    return {**text(config), "start_positions": torch.tensor([1, 2]), "end_positions": torch.tensor([3, 5])}


def translated(config: Any) -> dict[str, Any]:
    """For encoder-decoders: the decoder's inputs are made from the labels."""
    return {**text(config), "labels": ids(config, 8)}


def decoded(config: Any) -> dict[str, Any]:
    return {**text(config), "decoder_input_ids": ids(config, 8)}


def pixels(channels: int = 3, side: int = SIDE) -> torch.Tensor:
    return torch.rand(BATCH, channels, side, side)


def image(config: Any) -> dict[str, Any]:
    return {"pixel_values": pixels()}


def image64(config: Any) -> dict[str, Any]:
    return {"pixel_values": pixels(side=64)}


def image_label(config: Any) -> dict[str, Any]:
    return {"pixel_values": pixels(), "labels": torch.randint(0, 2, (BATCH,))}


def image64_label(config: Any) -> dict[str, Any]:
    return {"pixel_values": pixels(side=64), "labels": torch.randint(0, 2, (BATCH,))}


def image_text(config: Any) -> dict[str, Any]:
    return {**text(config), "pixel_values": pixels()}


def video(config: Any) -> dict[str, Any]:
    return {"pixel_values": torch.rand(BATCH, FRAMES, 3, SIDE, SIDE)}


def waveform(config: Any) -> dict[str, Any]:
    return {"input_values": torch.randn(BATCH, 1600)}


def spectrogram(config: Any) -> dict[str, Any]:
    return {"input_features": torch.randn(BATCH, 8, 64), "decoder_input_ids": ids(config, 8)}
