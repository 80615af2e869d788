"""The architectures of the sweep, by kind. Key value: ZOO."""

from __future__ import annotations

import dataclasses

from benchmarks.transformers_sweep.architecture import Architecture
from benchmarks.transformers_sweep.zoo_text import DECODERS, ENCODER_DECODERS, ENCODERS
from benchmarks.transformers_sweep.zoo_world import AUDIO, MULTIMODAL, SERIES, VISION

_KINDS = {
    "encoder": ENCODERS, "decoder": DECODERS, "encoder-decoder": ENCODER_DECODERS, "vision": VISION, "audio": AUDIO,
    "multimodal": MULTIMODAL, "time series": SERIES,
}  # fmt: skip

ZOO: dict[str, Architecture] = {
    architecture.name: dataclasses.replace(architecture, kind=kind)
    for kind, group in _KINDS.items()
    for architecture in group
}
