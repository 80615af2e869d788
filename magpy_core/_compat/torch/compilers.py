"""Imports torch's compilers, which takes seconds. Key functions: import_dynamo, import_inductor."""

from __future__ import annotations

import importlib
import sys

from magpy_core._compat.cpython.collector import collector_paused

_DYNAMO = "torch._dynamo"
_INDUCTOR = "torch._inductor.compile_fx"


def import_dynamo() -> None:
    """Imports TorchDynamo, which symbolic sizes and AOTAutograd need."""
    _import(_DYNAMO)


def import_inductor() -> None:
    """Imports what compiling, and loading compiled code, needs."""
    _import(_INDUCTOR)


def inductor_is_imported() -> bool:
    return _INDUCTOR in sys.modules


def _import(name: str) -> None:
    if name not in sys.modules:
        with collector_paused():
            importlib.import_module(name)
