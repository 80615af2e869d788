"""Keeps the code that Inductor has compiled from run to run, in MagPy's folder. Key function: kept."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from magpy_core._compat import code_cache
from magpy_core._compat.torch.inductor_cache import has_own_folder, kept_in

_checked: set[str] = set()
_lock = threading.Lock()
_thread = threading.local()


def _cache() -> code_cache.CodeCache | None:
    """The folder, without incomplete files; None if torch's is used: because the user has set one, or ours can't be
    trusted."""
    if has_own_folder():
        return None
    cache = code_cache.CodeCache(code_cache.usual_folder())
    if cache.refusal():
        return None  # `magpy-lsp cache info` says why; MagPy doesn't write to the program's log
    with _lock:
        if not _loads() and str(cache.folder) not in _checked:
            _checked.add(str(cache.folder))
            cache.remove_incomplete()
    return cache


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
    with kept_in(cache.folder):
        yield
        if not _loads():
            cache.record()
    if not _loads():
        cache.prune(code_cache.limit())
