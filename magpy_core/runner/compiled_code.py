"""The folder of compiled code, for the command line: its path and its contents. Key functions: info, folder_in_use, clear.

Does not import torch."""

from __future__ import annotations

import os
from dataclasses import dataclass

from magpy_core._compat.code_cache import CodeCache, limit, runs_folder, usual_folder


@dataclass(frozen=True)
class Info:
    """``problem``: why no code is kept there; empty if there is none."""

    folder: str
    size: int
    entries: int
    limit: int
    problem: str


def folder_in_use() -> str:
    """Where compiled code is kept: the usual folder, or the one that the user has set for torch."""
    return os.environ.get("TORCHINDUCTOR_CACHE_DIR") or str(usual_folder())


def info() -> Info:
    cache = CodeCache(usual_folder())
    problem = cache.refusal()
    if given := os.environ.get("TORCHINDUCTOR_CACHE_DIR"):
        problem = f"TORCHINDUCTOR_CACHE_DIR is set: compiled code is kept in {given}"
    return Info(str(cache.folder), cache.size(), cache.entries(), limit(), problem)


def clear() -> int:
    """Removes everything, also what is known of earlier runs; returns the number of bytes removed."""
    return CodeCache(usual_folder()).clear() + CodeCache(runs_folder()).clear()
