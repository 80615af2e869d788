"""Keeps the code that Inductor has compiled from run to run, in MagPy's folder. Key functions: kept, folder,
cache_problem."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from magpy_core._compat import code_cache
from magpy_core._compat.torch.inductor_cache import caching_in, has_own_folder
from magpy_core.limits import LIMITS

_checked: set[str] = set()
_swept: set[str] = set()
_lock = threading.Lock()
_thread = threading.local()


class _Found:
    """Problems of the folder, found by this process and by those that compiled for it."""

    refusal = ""
    removed = 0


class _Private:
    """The folder of this process and of those that compile for it, while the usual one can't be used."""

    folder: Path | None = None


def _cache() -> code_cache.CodeCache | None:
    """The folder, without incomplete files. If it can't be trusted, a private one for this run, not torch's default, which
    anybody may have made. None if the user has set a folder of torch's. Raises OSError if no folder can be made."""
    if has_own_folder():
        return None
    cache = code_cache.CodeCache(code_cache.usual_folder())
    if refusal := cache.refusal():
        _Found.refusal = refusal  # reported as a finding; MagPy doesn't write to the program's log
        return code_cache.CodeCache(_private())
    with _lock:
        if str(cache.folder) not in _swept:
            _swept.add(str(cache.folder))
            note_removed(cache.remove_half_loaded())
            atexit.register(_ended, cache, os.getpid())
        if not _loads() and str(cache.folder) not in _checked:
            _checked.add(str(cache.folder))
            note_removed(cache.remove_incomplete())
    return cache


def _private() -> Path:
    """A new folder that only the user can enter, removed when this process ends."""
    with _lock:
        if _Private.folder is None:
            _Private.folder = Path(tempfile.mkdtemp(prefix="magpy-"))
            atexit.register(_remove_private, _Private.folder, os.getpid())
        return _Private.folder


def _ended(cache: code_cache.CodeCache, by: int) -> None:
    if os.getpid() == by:
        cache.ended(by, crashed=False)


@contextmanager
def loading_files(files: Sequence[Path]) -> Iterator[None]:
    """In the block, ``files`` of the folder are loaded. If they crash this process, then or later, they will be removed."""
    where = folder()
    cache = None if where is None or where == _Private.folder else code_cache.CodeCache(where)
    if cache is not None:
        cache.is_loading(files)
    yield
    if cache is not None:
        cache.has_loaded()


def _remove_private(made: Path, by: int) -> None:
    if os.getpid() == by:  # not in processes that the program or a compilation forked
        shutil.rmtree(made, ignore_errors=True)


def prepare() -> None:
    """Before another process compiles for this one: both use the same folder."""
    with suppress(OSError):  # the compilation reports it
        _cache()


def folder() -> Path | None:
    """Where compiled code is kept; None if it is not."""
    try:
        cache = _cache()
    except OSError:  # no folder can be made; a compilation reports it
        return None
    return None if cache is None else cache.folder


def keep_file(file: Path, text: str) -> bool:
    """Writes a file of ours in the folder; whether it was possible."""
    return (where := folder()) is not None and code_cache.CodeCache(where).add(file, text)


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


def _is_damaged(cache: code_cache.CodeCache, file: Path) -> bool:
    removed = cache.removed_if_damaged(file)
    note_removed(int(removed))
    return removed


@contextmanager
def kept() -> Iterator[None]:
    """Inductor's compilations in the block use what was compiled before, and keep what they compile."""
    cache = _cache()
    if cache is None:
        yield
        return
    with caching_in(cache.folder, partial(_is_damaged, cache), LIMITS.sources_before_header) as used:
        yield
        if not _loads():
            cache.record()
    with loading_files([Path(path) for path in used]):
        pass
    if not _loads():
        cache.prune(code_cache.limit())
