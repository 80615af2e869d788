"""frozen: what a value holds at the moment, as text and bytes that compare bit for bit."""

from __future__ import annotations

import dataclasses
import io
import random
import types
import weakref
from collections import deque
from typing import Any

import numpy as np
import torch
from torch import nn


def frozen(value: Any, inside: tuple[int, ...] = ()) -> Any:
    """Tensors with their dtype, shape and bytes; modules with parameters, buffers and gradients; objects with attributes."""
    if value is None or (isinstance(value, (bool, int, float, complex, str, bytes)) and not isinstance(value, np.generic)):
        return type(value).__name__, repr(value)
    if isinstance(value, (np.ndarray, np.generic)):
        held = value.tolist() if value.dtype == object else value.tobytes()
        return type(value).__name__, str(value.dtype), value.shape, held
    if id(value) in inside:
        return "itself", len(inside) - inside.index(id(value))
    inside = (*inside, id(value))
    if isinstance(value, torch.Tensor):
        return _tensor(value, inside)
    if isinstance(value, nn.Module):
        return type(value).__name__, [(n, frozen(v, inside)) for n, v in _of_module(value).items()]
    if isinstance(value, torch.optim.Optimizer):
        return type(value).__name__, frozen(value.state_dict(), inside)
    if isinstance(value, (io.StringIO, io.BytesIO)):
        return type(value).__name__, value.getvalue(), value.tell()
    if isinstance(value, random.Random):
        return "Random", value.getstate()
    if isinstance(value, (types.FunctionType, types.MethodType, types.BuiltinFunctionType, type, types.ModuleType)):
        return "function", getattr(value, "__qualname__", str(value))
    if isinstance(value, weakref.ref):
        return "ref", frozen(value(), inside)
    return type(value).__name__, _contents(value, inside)


def _contents(value: Any, inside: tuple[int, ...]) -> Any:
    if isinstance(value, dict) or type(value).__name__ == "WeakKeyDictionary":
        return [(frozen(k, inside), frozen(v, inside)) for k, v in value.items()]
    if isinstance(value, (list, tuple, deque)):
        return [frozen(item, inside) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted((frozen(item, inside) for item in value), key=repr)
    if dataclasses.is_dataclass(value):
        return [(f.name, frozen(getattr(value, f.name), inside)) for f in dataclasses.fields(value)]
    if hasattr(value, "__dict__"):
        return [(name, frozen(held, inside)) for name, held in vars(value).items()]
    slots = [name for cls in type(value).__mro__ for name in getattr(cls, "__slots__", ())]
    if slots:
        return [(name, frozen(getattr(value, name, None), inside)) for name in slots if name != "__weakref__"]
    return repr(value)  # an iterator of itertools


def _of_module(module: nn.Module) -> dict[str, Any]:
    held: dict[str, Any] = dict(module.state_dict(keep_vars=True))
    for path, child in module.named_modules():
        for name, value in vars(child).items():
            if not name.startswith("_") and not isinstance(value, nn.Module):
                held[f"{path}:{name}"] = value
    return held


def _tensor(value: torch.Tensor, inside: tuple[int, ...]) -> Any:
    plain = value.detach()
    data = plain.to_dense() if plain.layout != torch.strided else plain
    held = data.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
    gradient = frozen(value.grad, inside) if value.is_leaf and value.grad is not None else None
    about = (
        str(value.dtype),
        tuple(value.shape),
        value.stride() if plain.layout == torch.strided else (),
        value.requires_grad,
    )
    return type(value).__name__, about, held, gradient


def difference(expected: Any, found: Any, path: str = "") -> str:
    """Where two of them differ first, or empty."""
    if isinstance(expected, (list, tuple)) and isinstance(found, (list, tuple)) and len(expected) == len(found):
        for k, (a, b) in enumerate(zip(expected, found, strict=True)):
            if a != b:
                named = isinstance(a, tuple) and isinstance(b, tuple) and a and isinstance(a[0], str) and a[0] == b[0]
                return difference(a, b, f"{path}.{a[0]}" if named else f"{path}[{k}]")
    return "" if expected == found else f"{path or 'value'}: {_short(expected)} became {_short(found)}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 160 else text[:157] + "..."
