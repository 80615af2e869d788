"""Kernels that an earlier run has compiled, in the folder of compiled code. Key functions: name_of, file_of, read, write.

A name is a digest of all that a capture's kernels depend on: graph, lines, inputs, modes, settings, versions, the device.
What can't be named for sure is compiled each time.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import platform
import sys
import types
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import torch
import torch.fx

from magpy_core._compat.torch.inductor_options import changed_settings
from magpy_core.backends.cache import folder
from magpy_core.capture.build import Capture
from magpy_core.findings.json_form import build
from magpy_core.findings.kernels import Kernel
from magpy_core.targets.devices import Device
from magpy_core.targets.retarget import place_of

_FOLDER = "kernels"
_SETTINGS = ("TORCH", "TRITON", "MAGPY_")  # environment variables that compilers and MagPy read
_PLAIN = (int, float, complex, str, bytes, bool, type(None), type(...), torch.dtype, torch.device, torch.layout,
          torch.memory_format)  # fmt: skip
_OURS = ("torch", "magpy_core", "_operator", "math")


class _Unnamed(Exception):
    """A part of a graph has no name that says what it does."""


def name_of(region: str, kind: str, capture: Capture, device: Device) -> str:
    """The name of a capture's kernels; empty if something in its graph could be something else in the next run."""
    try:
        parts = [region, kind, repr(device), repr(capture.modes), _versions(), *_settings(), *_inputs(capture)]
        for segment in capture.segments:
            if segment.expected:
                return ""  # a test of the program's data, as a closure
            parts += _graph(segment.module().graph)
    except _Unnamed:
        return ""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()


def file_of(name: str) -> Path | None:
    """The file of this name, which may not exist; None if nothing is kept."""
    where = folder() if name else None
    return None if where is None else where / _FOLDER / f"{name}.json"


def read(file: Path | None) -> dict[str, Any] | None:
    """What a process that compiles would send; None if it must be compiled."""
    if file is None:
        return None
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        for kernel in data["kernels"]:
            build(Kernel, kernel)
    except (OSError, ValueError, KeyError, TypeError):
        return None  # it is not there, or damaged
    with suppress(OSError):
        os.utime(file)  # the folder's least recently used files are removed first
    return {**data, "problems": []}


def write(file: Path | None, found: Mapping[str, Sequence[Any]]) -> None:
    """Keeps what was found, as JSON, for the next run."""
    if file is None:
        return
    partial = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(exist_ok=True)
        partial.write_text(json.dumps(found), encoding="utf-8")
        partial.replace(file)
    except OSError:  # a full disk: it is compiled again
        with suppress(OSError):
            partial.unlink()


# -- what kernels depend on ----------------------------------------------------------------------------------------------


@cache
def _versions() -> str:
    """Of torch, Triton, Python, and of MagPy's own source, which may be edited."""
    root = Path(__file__).parents[1]
    files = sorted((str(file), file.stat().st_mtime_ns) for file in root.rglob("*.py"))
    own = hashlib.sha256(repr(files).encode()).hexdigest()
    return repr((torch.__version__, importlib.metadata.version("triton"), platform.python_version(), own))


def _settings() -> list[str]:
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    of_torch = (
        torch.get_float32_matmul_precision(), torch.get_default_dtype(), torch.are_deterministic_algorithms_enabled(),
        matmul.allow_fp16_reduced_precision_reduction, matmul.allow_bf16_reduced_precision_reduction, cudnn.enabled,
        cudnn.allow_tf32,
    )  # fmt: skip
    names = sorted(name for name in os.environ if name.startswith(_SETTINGS) and not name.endswith("_CACHE_DIR"))
    variables = [(name, os.environ[name]) for name in names]
    return [repr(of_torch), repr(variables), changed_settings()]


def _inputs(capture: Capture) -> Iterator[str]:
    for given in capture.trace.inputs:
        yield f"{given.node.name} {given.source.describe()} {given.facts!r}"


def _graph(graph: torch.fx.Graph) -> Iterator[str]:
    for node in graph.nodes:
        meta = {key: node.meta[key] for key in sorted(node.meta) if _matters(key) and _is_plain(node.meta[key])}
        what = f"{node.op} {_target(node.target)} {_value(node.args)} {_value(node.kwargs)}"
        yield f"{node.name} = {what} {meta!r} {place_of(node)}"


def _matters(key: str) -> bool:
    return key.startswith("magpy_") and key != "magpy_version"


def _is_plain(value: Any) -> bool:
    return isinstance(value, (*_PLAIN, type)) or (isinstance(value, tuple) and all(map(_is_plain, value)))


def _target(target: Any) -> str:
    """The name that a target is found by; the version of what has it says what it does."""
    if isinstance(target, (str, torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        return str(target)
    owner = getattr(target, "__self__", None)
    if isinstance(owner, types.GetSetDescriptorType):  # a tensor's attribute
        return f"{owner.__objclass__.__qualname__}.{owner.__name__} {target.__name__}"
    module = getattr(target, "__module__", None)
    if isinstance(target, types.BuiltinFunctionType) and isinstance(owner, (type, types.ModuleType, type(None))):
        return f"{module} {target.__qualname__}"
    if isinstance(module, str) and module.split(".")[0] in _OURS:
        name = str(getattr(target, "__name__", ""))
        if name and getattr(sys.modules.get(module), name, None) is target:
            return f"{module}.{name}"
    raise _Unnamed(target)


def _value(value: Any) -> str:
    if isinstance(value, torch.fx.Node):
        return f"%{value.name}"
    if isinstance(value, _PLAIN):
        return repr(value)
    if isinstance(value, slice):
        return f"slice{_value((value.start, value.stop, value.step))}"
    if isinstance(value, (tuple, list)):
        return f"({', '.join(map(_value, value))},)"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_value(key)}: {_value(item)}' for key, item in value.items())}}}"
    raise _Unnamed(value)
