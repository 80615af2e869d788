"""Imports torch's compilers, which takes seconds. Key functions: import_dynamo, import_inductor.

TorchDynamo always comes first: it and Inductor import each other, so that a thread that begins with a part of Inductor and
one of the program's that begins with TorchDynamo, as the first optimizer does, would each find half of the other.
"""

from __future__ import annotations

import importlib

from magpy_core._compat.cpython.collector import collector_paused
from magpy_core._compat.cpython.imports import imported

_DYNAMO = "torch._dynamo"
_INDUCTOR = "torch._inductor.compile_fx"


def import_dynamo() -> None:
    """Imports TorchDynamo, which symbolic sizes and AOTAutograd need."""
    _import(_DYNAMO)


def import_inductor() -> None:
    """Imports what compiling, and loading compiled code, needs."""
    _import(_DYNAMO)
    _import(_INDUCTOR)


def inductor_is_imported() -> bool:
    return imported(_INDUCTOR) is not None


def _import(name: str) -> None:
    if imported(name) is None:
        with collector_paused():
            importlib.import_module(name)
