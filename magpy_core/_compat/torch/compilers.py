"""Imports torch's compilers, which takes seconds. Key functions: import_dynamo, import_inductor."""

from __future__ import annotations

import gc
import importlib
import sys
import threading

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
    take a quarter of the time. Another thread of the program would see that they are off, and might switch them off too."""
    if name in sys.modules:
        return
    switches = gc.isenabled() and threading.active_count() == 1
    if switches:
        gc.disable()
    try:
        importlib.import_module(name)
    finally:
        if switches:
            gc.enable()
