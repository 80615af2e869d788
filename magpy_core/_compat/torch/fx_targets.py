"""Call targets in fx graphs: those that fx prints incorrectly, those that create tensors.

Key functions: `printable_targets`, `device_constructors`.

fx prints a function that belongs to torch by its qualified name, which is looked up when the code runs. For
``MyFunction.apply`` (a method bound to a class, inherited from torch) the name is ``torch.autograd.function.apply``, which
does not exist; and the compilers' caches, which hash the printed code, can't distinguish two such functions.
"""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Callable
from typing import Any

import torch.fx
from torch.fx.graph import _is_from_torch
from torch.fx.node import _get_qualified_name


def device_constructors() -> frozenset[Any]:
    """The functions to which a default device (`torch.set_default_device`, ``with torch.device(...)``) applies."""
    from torch.utils._device import _device_constructors

    return frozenset(_device_constructors())


def _resolves(target: Any) -> bool:
    """Whether the name that fx prints leads back to the target."""
    if not _is_from_torch(target):
        return True  # fx puts the object itself into the code's globals
    try:
        path = _get_qualified_name(target)
        root, _, rest = path.partition(".")
        found = operator.attrgetter(rest)(sys.modules[root])
    except (AttributeError, KeyError, RuntimeError):
        return False
    return found is target or found == target


def _wrap(target: Callable[..., Any]) -> Callable[..., Any]:
    owner = getattr(target, "__self__", None)
    name = "_".join(part for part in (getattr(owner, "__name__", ""), getattr(target, "__name__", "call")) if part)

    def call(*args: Any, **kwargs: Any) -> Any:
        return target(*args, **kwargs)

    functools.update_wrapper(call, target, assigned=(), updated=())
    call.__name__ = call.__qualname__ = name
    return call


def printable_targets(gm: torch.fx.GraphModule) -> None:
    """Replaces each target whose printed name refers to something else by a plain function, which fx stores by identity."""
    wrapped: dict[Any, Callable[..., Any]] = {}
    for node in gm.graph.nodes:
        if node.op == "call_function" and not _resolves(node.target):
            key = (getattr(node.target, "__self__", None), getattr(node.target, "__name__", None), node.target)
            node.target = wrapped.setdefault(key, _wrap(node.target))
    if wrapped:
        gm.recompile()
