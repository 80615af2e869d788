"""Stored graphs in the folder of compiled code: one file for each, JSON with a checksum. Key functions: load, save, note."""

from __future__ import annotations

import hashlib
import json
import os
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from magpy_core._compat.torch.fake import guard_namespace
from magpy_core.backends.base import CompiledGraph
from magpy_core.backends.cache import folder, keep_file, loading, loading_files
from magpy_core.backends.stored.graph import StoredGraph, called, stored_graph

_FOLDER = "graphs"


def load(key: str, inputs: Sequence[Any]) -> CompiledGraph | None:
    """The graph that was stored as ``key``, if what its code assumes of sizes holds for these ``inputs``; None if there is
    none, or it is damaged."""
    with loading():
        where = folder()
    if where is None:
        return None
    file = _file(where, key)
    if not file.exists():
        return None
    try:
        digest, _, text = file.read_text(encoding="utf-8").partition("\n")
        if digest != _digest(text):
            return None
        stored = StoredGraph.from_json(json.loads(text))
        if not _holds(stored.guards, inputs):
            return None
        with loading_files([file, _mark(where, key), *(where / name for name in stored.libraries)]):
            compiled = called(stored, where)
    except Exception as error:  # it is damaged, or its libraries are gone: it is compiled again
        note(error)
        return None
    for used in (file, *(where / name for name in stored.libraries)):
        with suppress(OSError):
            os.utime(used)  # the folder's least recently used files are removed first
    return compiled


def save(key: str, compiled: CompiledGraph) -> bool:
    """Stores a compiled graph as ``key``, if it can be. Whether it was."""
    where = folder()
    if where is None:
        return False
    try:
        stored = stored_graph(compiled, where)
        text = "" if stored is None else json.dumps(stored.json())
        _mark(where, key).unlink(missing_ok=True)  # it is about code that was stored before
        return bool(text) and keep_file(_file(where, key), f"{_digest(text)}\n{text}")
    except Exception as error:  # the next run compiles it again
        note(error)
        return False


def is_verified(key: str) -> bool:
    """Whether the code that is stored as ``key`` was compared with eager mode in an earlier run."""
    where = folder()
    return where is not None and _mark(where, key).exists()


def note_verified(key: str) -> None:
    """The code that is stored as ``key`` computes what eager mode does."""
    where = folder()
    if where is not None and _file(where, key).exists():
        keep_file(_mark(where, key), "verified\n")


def remove(key: str) -> None:
    """Nobody is to load the code that is stored as ``key``."""
    where = folder()
    if where is not None:
        for file in (_file(where, key), _mark(where, key)):
            with suppress(OSError):
                file.unlink()


def note(error: Exception) -> None:
    """Storing and loading never fail for the program; ``MAGPY_DEBUG=1`` shows why it was in vain."""
    if os.environ.get("MAGPY_DEBUG"):
        traceback.print_exception(error)


def _file(where: Path, key: str) -> Path:
    return where / _FOLDER / f"{key}.json"


def _mark(where: Path, key: str) -> Path:
    return where / _FOLDER / f"{key}.verified"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _holds(guards: Sequence[str], inputs: Sequence[Any]) -> bool:
    names = dict(guard_namespace()) if guards else {}
    return all(eval(guard, names, {"L": inputs}) for guard in guards)
