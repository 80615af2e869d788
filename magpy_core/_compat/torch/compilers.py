"""Imports torch's compilers, which takes seconds. Key functions: import_dynamo, import_inductor."""

from __future__ import annotations

import gc
import importlib
import sys

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
    """Imports without collections: nearly all objects that an import makes stay, and looking for garbage among them would
    take a quarter of the time."""
    if name in sys.modules:
        return
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        importlib.import_module(name)
    finally:
        if was_enabled:
            gc.enable()
