"""Values that replay can print: plain ones, copied at the call. Key functions: printable, frozen."""

from __future__ import annotations

import collections
import copy
from typing import Any

import torch

from magpy_core.knowledge.modules import PRINTABLE_CONTAINERS
from magpy_core.refgraph import kinds
from magpy_core.refgraph.kinds import is_a


def printable(value: Any) -> bool:
    if kinds.kind_of(value) in kinds.CONTAINERS and type(value).__module__ in PRINTABLE_CONTAINERS:
        return all(map(printable, [*value, *value.values()] if is_a(value, dict) else value))
    return kinds.kind_of(value) == kinds.SCALAR


def frozen(value: Any) -> Any:
    """A copy of a printable value: the program may change its containers later."""
    kind = kinds.kind_of(value)
    if kind not in kinds.CONTAINERS or type(value) is torch.Size:
        return value
    if kind == kinds.DICT:
        copied = copy.copy(value)
        dict.update(copied, {k: frozen(v) for k, v in value.items()})
        return copied
    parts = map(frozen, value)
    return collections.deque(parts, value.maxlen) if kind == kinds.DEQUE else type(value)(parts)
