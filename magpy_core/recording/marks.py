"""Marks: dimensions that the program marks as dynamic (`magpy_core.mark_dynamic`). Key functions: mark, marked.

Marks are not attributes of tensors, which pickles and copies would include, and keep nothing alive.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable

import torch

_PRUNED_AT = 256
# By id: a dict of tensors would compare them. Without callbacks, which a recording would attribute to the program.
_marked: dict[int, tuple[weakref.ref[torch.Tensor], frozenset[int]]] = {}


def mark(tensor: torch.Tensor, dims: Iterable[int]) -> None:
    """``dims`` count from 0."""
    if len(_marked) >= _PRUNED_AT:
        for key, (ref, _) in list(_marked.items()):
            if ref() is None:
                _marked.pop(key, None)
    _marked[id(tensor)] = (weakref.ref(tensor), marked(tensor) | frozenset(dims))


def marked(tensor: torch.Tensor) -> frozenset[int]:
    ref, dims = _marked.get(id(tensor), (None, frozenset[int]()))
    return dims if ref is not None and ref() is tensor else frozenset()


def any_marked() -> bool:
    return bool(_marked)
