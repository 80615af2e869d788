"""What Inductor has compiled is kept from run to run, in a folder of MagPy's. Key functions: kept, cache_problem."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from magpy_core._compat import code_cache
from magpy_core._compat.torch.inductor_cache import caching_in, has_own_folder

_checked: set[str] = set()
_lock = threading.Lock()
_thread = threading.local()


class _Found:
    """What was found wrong with the folder by this process, and by those that compiled for it."""

    refusal = ""
    removed = 0


def _cache() -> code_cache.CodeCache | None:
    """The folder, free of incomplete files; None where torch's is used: the user has set one, or ours can't be trusted."""
    if has_own_folder():
        return None
    cache = code_cache.CodeCache(code_cache.usual_folder())
    if refusal := cache.refusal():
        _Found.refusal = refusal  # for a finding; the program's own logging is not ours to write to
        return None
    with _lock:
        if not _loads() and str(cache.folder) not in _checked:
            _checked.add(str(cache.folder))
            note_removed(cache.remove_incomplete())
    return cache


def removed_files() -> int:
    """How many damaged files were removed so far."""
    return _Found.removed


def note_removed(files: int) -> None:
    """So many were removed, perhaps by a process that compiled for this one."""
    _Found.removed += files


def cache_problem() -> str:
    """Why compiled code is not kept, or that some of it was damaged; empty if all is well."""
    if _Found.refusal:
        return f"Compiled code is not kept for the next run: {_Found.refusal}."
    removed = _Found.removed
    files = "a damaged file was" if removed == 1 else f"{removed} damaged files were"
    return f"In the cache of compiled code, {files} found and removed; what was in it is compiled again." if removed else ""


def _loads() -> bool:
    return getattr(_thread, "loads", False)


@contextmanager
def loading() -> Iterator[None]:
    """What another process has just compiled is loaded in the block: that process has looked through the folder, which takes
    seconds where it is large, and the program waits."""
    before, _thread.loads = _loads(), True
    try:
        yield
    finally:
        _thread.loads = before


@contextmanager
def kept() -> Iterator[None]:
    """Inductor's compilations in the block find what was compiled before, and what they compile is found by the next."""
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
