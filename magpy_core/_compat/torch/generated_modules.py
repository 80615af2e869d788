"""Modules that Inductor has generated for the CPU, kept without Inductor: importing it takes a second.

Of a generated module, the function `call` runs the graph. It needs a few names: kernels in libraries, torch's functions and
operators. If these are all, the function can be kept and loaded by torch alone.
Key type: GeneratedModule. Key functions: kept_of, load.
"""

from __future__ import annotations

import ast
import importlib.util
import math
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, ModuleType, SimpleNamespace
from typing import Any

import torch

from magpy_core._compat.code_cache import digest_of

Call = Callable[[list[Any]], Any]

_PARTS = frozenset({"Runner", "runner", "call"})  # what a generated module defines to be called
#: Namespaces of operators that torch itself registers, and our operators.
_NAMESPACES = frozenset({"aten", "prims", "mkldnn", "mkl", "magpy"})
_OURS = {
    "after": "operators_trace", "holds": "condition_op", "rnn_layer": "rnn_kernels", "rnn_layer_backward": "rnn_kernels",
    "recurrent_forward": "recurrent_operator", "recurrent_backward": "recurrent_operator",
}  # fmt: skip
_MODULES: dict[str, Any] = {"torch": torch, "math": math}
_NUMBERS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
_HELPERS = "torch._C._dynamo.guards"
_LIBRARIES = "kernel library"
_POINTERS = "_TORCHINDUCTOR_PYOBJECT_TENSOR_DATA_PTR"


@dataclass(frozen=True)
class GeneratedModule:
    """``text``: the part of the module ``file`` that its `call` consists of. ``names``: where its other names come from, as
    lists of texts and numbers; kernels come from libraries in the folder of compiled code."""

    file: str
    text: str
    names: dict[str, list[Any]]


class _Unknown(Exception):
    """A name that torch alone doesn't have."""


def kept_of(run: Any, folder: Path) -> GeneratedModule | None:
    """The module whose `call` is ``run``, with its libraries in ``folder``; None if it needs more than torch."""
    function = getattr(run, "__func__", run)
    if not isinstance(function, FunctionType) or function.__name__ != "call":
        return None
    space = function.__globals__
    file = Path(str(space.get("__file__")))
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
        parts = ast.Module([node for node in tree.body if _PARTS.intersection(_defined(node))], [])
        own = {name for node in parts.body for name in _defined(node)}
        needed = (_used(parts) & space.keys()) - own
        names = {name: _origin(name, space[name], parts, folder) for name in sorted(needed)}
        _check_operators(parts)
    except (OSError, SyntaxError, _Unknown):
        return None
    return GeneratedModule(file.name, ast.unparse(parts), names) if "call" in own else None


def _defined(node: ast.stmt) -> list[str]:
    if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _used(parts: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(parts) if isinstance(node, ast.Name)}


def _attributes(parts: ast.AST, of: str) -> set[str]:
    """The attributes of what is called ``of`` that are used; raises _Unknown if it is used otherwise."""
    found = [node for node in ast.walk(parts) if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)]
    names = {node.attr for node in found if isinstance(node.value, ast.Name) and node.value.id == of}
    uses = sum(isinstance(node, ast.Name) and node.id == of for node in ast.walk(parts))
    if uses != sum(isinstance(node.value, ast.Name) and node.value.id == of for node in found):
        raise _Unknown(of)
    return names


def _origin(name: str, value: Any, parts: ast.AST, folder: Path) -> list[Any]:
    if type(value).__name__ == "KernelNamespace":  # of functions of torch that Inductor calls
        return ["functions", {key: _function(getattr(value, key)) for key in sorted(_attributes(parts, name))}]
    if isinstance(value, ModuleType) and value in _MODULES.values():
        return ["module", value.__name__]
    if isinstance(value, torch._ops._OpNamespace) and value.name in _NAMESPACES:
        return ["operators", value.name]
    if isinstance(value, float) and str(value) in _NUMBERS:
        return ["number", str(value)]
    library = getattr(value, "__self__", None)
    if isinstance(library, ModuleType) and str(getattr(library, "__file__", "")).endswith(".so"):
        return _kernel(value, library, folder)
    return _function(value)


def _kernel(value: Any, library: ModuleType, folder: Path) -> list[Any]:
    file, name = Path(str(library.__file__)), str(getattr(value, "__name__", ""))
    if not file.is_relative_to(folder) or getattr(library, name, None) is not value:
        raise _Unknown(name)
    return [_LIBRARIES, library.__name__, str(file.relative_to(folder)), digest_of(file), name]


def _function(value: Any) -> list[Any]:
    name = str(getattr(value, "__name__", ""))
    for owner, found in ((_HELPERS, torch._C._dynamo.guards), ("torch", torch)):
        if isinstance(value, (BuiltinFunctionType, type)) and getattr(found, name, None) is value:
            return ["attribute", owner, name]
    raise _Unknown(name)


def _check_operators(parts: ast.AST) -> None:
    """Raises _Unknown if an operator is used that torch alone doesn't have."""
    for chain in _chains(parts):
        if chain[:2] == ["torch", "ops"] and (len(chain) < 4 or not _is_known(chain[2], chain[3])):
            raise _Unknown(".".join(chain))


def _is_known(namespace: str, name: str) -> bool:
    return namespace in _NAMESPACES and (namespace != "magpy" or name in _OURS)


def _chains(parts: ast.AST) -> Iterator[list[str]]:
    """All expressions like ``torch.ops.aten.add.default``, and the beginnings of those, as names."""
    inner = {id(node.value) for node in ast.walk(parts) if isinstance(node, ast.Attribute)}
    for node in ast.walk(parts):
        if isinstance(node, ast.Attribute) and id(node) not in inner:
            names: list[str] = []
            value: ast.expr = node
            while isinstance(value, ast.Attribute):
                names.insert(0, value.attr)
                value = value.value
            if isinstance(value, ast.Name):
                yield [value.id, *names]


# -- loading -------------------------------------------------------------------------------------------------------------


def load(module: GeneratedModule, folder: Path) -> Call:
    """Its `call`. Raises OSError if a library is no longer there, or is another one, ImportError if it can't be loaded."""
    space = {name: _found(origin, folder) for name, origin in module.names.items()}
    for name, provider in _OURS.items():
        if f"torch.ops.magpy.{name}" in module.text:
            importlib.import_module(f"magpy_core._compat.torch.{provider}")  # registers it
    space["__file__"] = module.file
    exec(compile(module.text, module.file, "exec"), space)
    call: Call = space["call"]
    return call


def files_of(module: GeneratedModule) -> list[str]:
    """The names of its libraries in the folder of compiled code."""
    return sorted({origin[2] for origin in module.names.values() if origin[0] == _LIBRARIES})


def _found(origin: list[Any], folder: Path) -> Any:
    kind, *what = origin
    if kind == "functions":
        return SimpleNamespace(**{key: _found(value, folder) for key, value in what[0].items()})
    if kind == "module":
        return _MODULES[what[0]]
    if kind == "operators":
        return getattr(torch.ops, what[0])
    if kind == "number":
        return _NUMBERS[what[0]]
    if kind == "attribute":
        return getattr(torch._C._dynamo.guards if what[0] == _HELPERS else torch, what[1])
    assert kind == _LIBRARIES, kind
    return getattr(_library(what[0], folder / what[1], what[2]), what[3])


def _library(name: str, file: Path, digest: str) -> ModuleType:
    """A library of kernels, as torch loads it; if torch has loaded it, it is the same one. Loading or calling a damaged one
    would end the process."""
    if digest_of(file) != digest:
        raise OSError(f"{file} has changed")
    if (known := sys.modules.get(name)) is not None:
        return known
    before = os.environ.get(_POINTERS)
    # by which the library finds the function that reads tensors
    os.environ[_POINTERS] = str(torch._C._dynamo.guards._torchinductor_pyobject_tensor_data_ptr)  # type: ignore[attr-defined]
    try:
        spec = importlib.util.spec_from_file_location(name, file)
        assert spec is not None and spec.loader is not None
        library = sys.modules[name] = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(library)
        except BaseException:
            del sys.modules[name]
            raise
    finally:
        if before is None:
            del os.environ[_POINTERS]
        else:
            os.environ[_POINTERS] = before
    return library
