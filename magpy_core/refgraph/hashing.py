"""Hashing: whether a dict or a set may be asked for a key once more than the program asks.

A look-up runs the key's ``__hash__`` and the ``__eq__`` of whatever it is compared with. Where these are Python code of the
program's, which may count or print, a recording, a guard and a replay must not run them. Key functions: has_pure_hash,
keys_have_pure_hash.
"""

from __future__ import annotations

import sys
import types
from typing import Any

import torch

from magpy_core.refgraph import natives
from magpy_core.refgraph.kinds import is_a
from magpy_core.refgraph.lookup import class_lookup

_PLAIN = frozenset({str, int, float, bool, bytes, complex, type(None), type(...), torch.dtype, torch.device, range})
_LIBRARIES = frozenset({*sys.stdlib_module_names, "torch", "numpy"})
_CONTAINERS = (tuple, frozenset)
_DEPTH = 6


def has_pure_hash(key: Any, depth: int = _DEPTH) -> bool:
    """Whether hashing and comparing ``key`` runs no code of the program's."""
    tp: Any = type(key)
    if tp in _PLAIN:
        return True
    if depth == 0:
        return False
    hashed, _ = class_lookup(tp, "__hash__")
    if hashed is object.__hash__ or hashed is None or hashed is torch.Tensor.__hash__:
        return True  # by identity, or not at all
    if not (_runs_no_user_code(hashed) and _runs_no_user_code(class_lookup(tp, "__eq__")[0])):
        return False
    return not is_a(key, _CONTAINERS) or all(has_pure_hash(part, depth - 1) for part in natives.elements(key))


def hashable(key: Any) -> bool:
    """Whether a key that runs no code of the program's has a hash at all: a dict raises for a list, and looks nothing up."""
    try:
        hash(key)
    except TypeError:
        return False
    return True


def same_key(a: Any, b: Any) -> bool:
    """Whether a dict takes one of two such keys for the other: ``1``, ``1.0`` and ``True`` are one."""
    try:
        return a is b or (hash(a) == hash(b) and bool(a == b))
    except TypeError:
        return False


def keys_have_pure_hash(container: Any) -> bool:
    """The same of everything that a dict or a set holds."""
    return all(type(key) is str or has_pure_hash(key) for key in natives.keys(container))


def _runs_no_user_code(method: Any) -> bool:
    if not is_a(method, types.FunctionType):
        return is_a(method, (types.WrapperDescriptorType, types.MethodDescriptorType))
    return str(method.__module__).partition(".")[0] in _LIBRARIES
