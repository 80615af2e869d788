"""Hashing: whether MagPy may look up a key in a dict or set without running user code.

A lookup runs the key's ``__hash__`` and the ``__eq__`` of the keys it is compared with. If these are the program's Python
code, which may count or print, then recordings, guards and replays must not run them. Key functions: has_pure_hash,
keys_have_pure_hash.
"""

from __future__ import annotations

import types
from typing import Any

import torch

from magpy_core.knowledge.modules import HASH_RUNS_NO_USER_CODE
from magpy_core.refgraph import natives
from magpy_core.refgraph.kinds import is_a
from magpy_core.refgraph.lookup import class_lookup

_PLAIN = frozenset({str, int, float, bool, bytes, complex, type(None), type(...), torch.dtype, torch.device, range})
_CONTAINERS = (tuple, frozenset)
_DEPTH = 6


def has_pure_hash(key: Any, depth: int = _DEPTH) -> bool:
    """Whether hashing and comparing ``key`` runs no user code."""
    tp: Any = type(key)
    if tp in _PLAIN:
        return True
    if depth == 0:
        return False
    hashed, _ = class_lookup(tp, "__hash__")
    if hashed is object.__hash__ or hashed is None or hashed is torch.Tensor.__hash__:
        return True  # hashed by identity, or unhashable
    if not (_runs_no_user_code(hashed) and _runs_no_user_code(class_lookup(tp, "__eq__")[0])):
        return False
    return not is_a(key, _CONTAINERS) or all(has_pure_hash(part, depth - 1) for part in natives.elements(key))


def hashable(key: Any) -> bool:
    """Whether a key with a pure hash is hashable at all; a dict raises for a list."""
    try:
        hash(key)
    except TypeError:
        return False
    return True


def same_key(a: Any, b: Any) -> bool:
    """Whether two such keys are the same key for a dict, as ``1``, ``1.0`` and ``True`` are."""
    try:
        return a is b or (hash(a) == hash(b) and bool(a == b))
    except TypeError:
        return False


def keys_have_pure_hash(container: Any) -> bool:
    """Whether all keys of a dict, or elements of a set, have a pure hash."""
    return all(type(key) is str or has_pure_hash(key) for key in natives.keys(container))


def _runs_no_user_code(method: Any) -> bool:
    if not is_a(method, types.FunctionType):
        return is_a(method, (types.WrapperDescriptorType, types.MethodDescriptorType))
    return str(method.__module__).partition(".")[0] in HASH_RUNS_NO_USER_CODE
