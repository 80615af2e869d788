"""Names for what an operator graph contains, which say the same in another process.

Key functions: target_name, value_text.
"""

from __future__ import annotations

import functools
import os
import sys
import types
from collections.abc import Mapping
from typing import Any

import torch
import torch.fx

_PLAIN = frozenset({
    int, float, complex, str, bytes, bool, type(None), type(...),
    torch.dtype, torch.device, torch.layout, torch.memory_format,
})  # fmt: skip
_OURS = ("torch", "magpy_core", "_operator", "math", "builtins")  # which the versions of MagPy, torch and Python determine
_MAGPY = os.path.dirname(os.path.dirname(__file__))
_FOLDERS = tuple(folder + os.sep for folder in (os.path.dirname(torch.__file__), _MAGPY))
_NAMESPACES = ("aten", "prims", "magpy")


class Unnamed(Exception):
    """A part of a graph has no name that says what it does."""


def is_plain(value: Any) -> bool:
    """Whether the ``repr`` of a value says what it is."""
    return type(value) in _PLAIN or isinstance(value, type) or (isinstance(value, tuple) and all(map(is_plain, value)))


def target_name(target: Any) -> str:
    """The name of an operation, which does the same in any process with the same versions. Raises Unnamed."""
    if isinstance(target, str):
        return f"method {target}"
    if isinstance(target, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        name = str(target)
        if name.partition(".")[0] not in _NAMESPACES:
            raise Unnamed(target)
        return name
    owner = getattr(target, "__self__", None)
    if isinstance(owner, types.GetSetDescriptorType):  # a tensor's attribute
        return f"{owner.__objclass__.__qualname__}.{owner.__name__} {target.__name__}"
    if isinstance(target, types.MethodDescriptorType) and issubclass(torch.Tensor, target.__objclass__):
        return f"method {target.__name__} of {target.__objclass__.__qualname__}"
    module, name = getattr(target, "__module__", None), str(getattr(target, "__name__", ""))
    if module is None or (isinstance(module, str) and module.split(".")[0] in _OURS):
        if isinstance(target, types.BuiltinFunctionType) and isinstance(owner, (type, types.ModuleType, type(None))):
            return f"{module} {target.__qualname__}"
        if name and getattr(sys.modules.get(str(module)), name, None) is target and _is_ours(target):
            return f"{module}.{name}"
    if isinstance(target, types.FunctionType) and (attribute := _methods().get(target)) is not None:
        return f"method {attribute}"
    raise Unnamed(target)


@functools.cache
def _methods() -> dict[types.FunctionType, str]:
    """Tensor's methods that are Python functions, and their names as attributes: ``__pow__`` calls itself ``pow``."""
    found = vars(torch.Tensor).items()
    return {one: name for name, one in found if isinstance(one, types.FunctionType) and _is_ours(one)}


def _is_ours(target: Any) -> bool:
    """Whether a Python function is defined by torch or MagPy; one that the program has put in its place, with its
    names, is not."""
    code = getattr(target, "__code__", None)
    return code is None or code.co_filename.startswith(_FOLDERS)


def value_text(value: Any, names: Mapping[torch.fx.Node, str] | None = None) -> str:
    """An argument of an operation as text. ``names``: of nodes; None: their own. Raises Unnamed."""
    if isinstance(value, torch.fx.Node):
        return f"%{value.name if names is None else names[value]}"
    if type(value) in _PLAIN:
        return repr(value)
    if isinstance(value, slice):
        return f"slice{value_text((value.start, value.stop, value.step), names)}"
    if isinstance(value, (tuple, list)):
        return f"{type(value).__name__}({', '.join(value_text(item, names) for item in value)},)"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{value_text(key)}: {value_text(item, names)}' for key, item in value.items())}}}"
    raise Unnamed(value)
