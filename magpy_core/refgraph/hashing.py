"""Hashing: whether a dict or a set may be asked for a key once more than the program asks.

A look-up runs the key's ``__hash__`` and the ``__eq__`` of whatever it is compared with. Where these are Python code of the
program's, which may count or print, a recording, a guard and a replay must not run them. Key functions: quiet, quiet_keys.
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


def quiet(key: Any, depth: int = _DEPTH) -> bool:
    """Whether nobody notices that a dict is asked for ``key`` once more."""
    tp: Any = type(key)
    if tp in _PLAIN:
        return True
    if depth == 0:
        return False
    hashed, _ = class_lookup(tp, "__hash__")
    if hashed is object.__hash__ or hashed is None or hashed is torch.Tensor.__hash__:
        return True  # by identity, or not at all
    if not (_is_quiet(hashed) and _is_quiet(class_lookup(tp, "__eq__")[0])):
        return False
    return not is_a(key, _CONTAINERS) or all(quiet(part, depth - 1) for part in natives.elements(key))


def hashable(key: Any) -> bool:
    """Whether a quiet key can be asked for at all: with a list, a dict raises and looks nothing up."""
    try:
        hash(key)
    except TypeError:
        return False
    return True


def same_key(a: Any, b: Any) -> bool:
    """Whether a dict takes one quiet key for the other: ``1``, ``1.0`` and ``True`` are one."""
    try:
        return a is b or (hash(a) == hash(b) and bool(a == b))
    except TypeError:
        return False


def quiet_keys(container: Any) -> bool:
    """The same of everything that a dict or a set holds."""
    return all(type(key) is str or quiet(key) for key in natives.keys(container))


def _is_quiet(method: Any) -> bool:
    if not is_a(method, types.FunctionType):
        return is_a(method, (types.WrapperDescriptorType, types.MethodDescriptorType))
    return str(method.__module__).partition(".")[0] in _LIBRARIES
