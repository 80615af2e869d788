"""The architectures of the sweep, by kind. Key value: ZOO."""

from __future__ import annotations

import dataclasses
import hashlib

from benchmarks.transformers_sweep.architecture import Architecture
from benchmarks.transformers_sweep.zoo_text import DECODERS, ENCODER_DECODERS, ENCODERS
from benchmarks.transformers_sweep.zoo_world import AUDIO, MULTIMODAL, SERIES, VISION

_KINDS = {
    "encoder": ENCODERS, "decoder": DECODERS, "encoder-decoder": ENCODER_DECODERS, "vision": VISION, "audio": AUDIO,
    "multimodal": MULTIMODAL, "time series": SERIES,
}  # fmt: skip

_ALL = [dataclasses.replace(one, kind=kind) for kind, group in _KINDS.items() for one in group]

# In the order of the hashes of their names, so that any slice is a sample of all kinds.
ZOO: dict[str, Architecture] = {
    one.name: one for one in sorted(_ALL, key=lambda one: hashlib.sha256(one.name.encode()).digest())
}
