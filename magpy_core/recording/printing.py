"""Values that replay can print again: plain ones, kept as they are at the call. Key functions: printable, frozen."""

from __future__ import annotations

import collections
import copy
from typing import Any

import torch

from magpy_core.refgraph import kinds
from magpy_core.refgraph.kinds import is_a


def printable(value: Any) -> bool:
    kind = kinds.kind_of(value)
    if kind in (kinds.SCALAR,):
        return True
    if kind in kinds.CONTAINERS and type(value).__module__ in ("builtins", "collections", "torch"):
        parts = [*value.keys(), *value.values()] if is_a(value, dict) else list(value)
        return all(printable(v) for v in parts)
    return False


def frozen(value: Any) -> Any:
    """A printable value as it is now: the program may change its containers later."""
    kind = kinds.kind_of(value)
    if kind not in kinds.CONTAINERS:
        return value
    if kind == kinds.DICT:
        copied = copy.copy(value)
        for k, v in list(value.items()):
            copied[k] = frozen(v)
        return copied
    parts = [frozen(v) for v in value]
    if kind == kinds.TUPLE:
        return value if type(value) is torch.Size else tuple.__new__(type(value), parts)
    if kind == kinds.DEQUE:
        return collections.deque(parts, value.maxlen)
    return parts if kind == kinds.LIST else type(value)(parts)
