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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import torch
import torch.fx

from magpy_core._compat.torch.compiler_state import changed_settings, own_source
from magpy_core.backends.cache import folder
from magpy_core.capture.build import Capture
from magpy_core.findings.json_form import build
from magpy_core.findings.kernels import Kernel
from magpy_core.opgraph.naming import Unnamed, is_plain, target_name, value_text
from magpy_core.products.targets.devices import Device
from magpy_core.products.targets.retarget import place_of

_FOLDER = "kernels"
_SETTINGS = ("TORCH", "TRITON", "MAGPY_")  # environment variables that compilers and MagPy read


def name_of(region: str, kind: str, capture: Capture, device: Device) -> str:
    """The name of a capture's kernels; empty if something in its graph could be something else in the next run."""
    try:
        parts = [region, kind, repr(device), repr(capture.modes), _versions(), *_settings(), *_inputs(capture)]
        for segment in capture.segments:
            if segment.expected:
                return ""  # a test of the program's data, as a closure
            parts += _graph(segment.module().graph)
    except Unnamed:
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
    return repr((torch.__version__, importlib.metadata.version("triton"), platform.python_version(), own_source()))


def _settings() -> list[str]:
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    of_torch = (
        torch.get_float32_matmul_precision(), torch.get_default_dtype(), torch.are_deterministic_algorithms_enabled(),
        matmul.allow_fp16_reduced_precision_reduction, matmul.allow_bf16_reduced_precision_reduction, cudnn.enabled,
        cudnn.allow_tf32,
    )  # fmt: skip
    names = sorted(name for name in os.environ if name.startswith(_SETTINGS) and not name.endswith("_CACHE_DIR"))
    variables = [(name, os.environ[name]) for name in names]
    return [repr(of_torch), repr(variables), *_changes()]


def _changes() -> list[str]:
    if changed_settings():
        raise Unnamed("the program has changed settings of compilers")
    return []


def _inputs(capture: Capture) -> Iterator[str]:
    for given in capture.trace.inputs:
        yield f"{given.node.name} {given.source.describe()} {given.facts!r}"


def _graph(graph: torch.fx.Graph) -> Iterator[str]:
    for node in graph.nodes:
        meta = {key: node.meta[key] for key in sorted(node.meta) if _matters(key) and is_plain(node.meta[key])}
        what = f"{node.op} {target_name(node.target)} {value_text(node.args)} {value_text(node.kwargs)}"
        yield f"{node.name} = {what} {meta!r} {place_of(node)}"


def _matters(key: str) -> bool:
    return key.startswith("magpy_") and key != "magpy_version"
