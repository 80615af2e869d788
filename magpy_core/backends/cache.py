"""Keeps the code that Inductor has compiled from run to run, in MagPy's folder. Key functions: kept, folder,
cache_problem."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from magpy_core._compat import code_cache
from magpy_core._compat.torch.inductor_cache import caching_in, has_own_folder

_checked: set[str] = set()
_lock = threading.Lock()
_thread = threading.local()


class _Found:
    """Problems of the folder, found by this process and by those that compiled for it."""

    refusal = ""
    removed = 0


def _cache() -> code_cache.CodeCache | None:
    """The folder, without incomplete files; None if torch's is used: because the user has set one, or ours can't be
    trusted."""
    if has_own_folder():
        return None
    cache = code_cache.CodeCache(code_cache.usual_folder())
    if refusal := cache.refusal():
        _Found.refusal = refusal  # reported as a finding; MagPy doesn't write to the program's log
        return None
    with _lock:
        if not _loads() and str(cache.folder) not in _checked:
            _checked.add(str(cache.folder))
            note_removed(cache.remove_incomplete())
    return cache


def folder() -> Path | None:
    """Where compiled code is kept; None if it is not."""
    cache = _cache()
    return None if cache is None else cache.folder


def keep_file(file: Path, text: str) -> bool:
    """Writes a file of ours in the folder; whether it was possible."""
    cache = _cache()
    return cache is not None and cache.add(file, text)


def removed_files() -> int:
    """How many damaged files have been removed so far."""
    return _Found.removed


def note_removed(files: int) -> None:
    """Counts removed files, perhaps removed by a process that compiled for this one."""
    _Found.removed += files


def cache_problem() -> str:
    """Why compiled code is not kept, or that some of it was damaged; empty if neither."""
    if _Found.refusal:
        return f"Compiled code is not kept for the next run: {_Found.refusal}."
    removed = _Found.removed
    files = "a damaged file was" if removed == 1 else f"{removed} damaged files were"
    return f"In the cache of compiled code, {files} found and removed; what was in it is compiled again." if removed else ""


def _loads() -> bool:
    return getattr(_thread, "loads", False)


@contextmanager
def loading() -> Iterator[None]:
    """In the block, the program loads what another process has just compiled. That process has already cleaned up the
    folder, which takes seconds if it is large, so the program doesn't."""
    before, _thread.loads = _loads(), True
    try:
        yield
    finally:
        _thread.loads = before


@contextmanager
def kept() -> Iterator[None]:
    """Inductor's compilations in the block use what was compiled before, and keep what they compile."""
    cache = _cache()
    if cache is None:
        yield
        return
    with caching_in(cache.folder):
        yield
        if not _loads():
            cache.record()
    if not _loads():
        cache.prune(code_cache.limit())
