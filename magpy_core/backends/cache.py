"""What Inductor has compiled is kept from run to run, in a folder of MagPy's. Key function: kept."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from magpy_core._compat import code_cache
from magpy_core._compat.torch.inductor_cache import has_own_folder, kept_in

_checked: set[str] = set()
_lock = threading.Lock()


def _cache() -> code_cache.CodeCache | None:
    """The folder, free of incomplete files; None where torch's is used: the user has set one, or ours can't be trusted."""
    if has_own_folder():
        return None
    cache = code_cache.CodeCache(code_cache.usual_folder())
    if cache.refusal():
        return None  # `magpy-lsp cache info` says why; the program's own logging is not ours to write to
    with _lock:
        if str(cache.folder) not in _checked:
            _checked.add(str(cache.folder))
            cache.remove_incomplete()
    return cache


@contextmanager
def kept() -> Iterator[None]:
    """Inductor's compilations in the block find what was compiled before, and what they compile is found by the next."""
    cache = _cache()
    if cache is None:
        yield
        return
    with kept_in(cache.folder):
        yield
        cache.record()
    cache.prune(code_cache.limit())
