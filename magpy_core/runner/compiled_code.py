"""The folder of compiled code, for the command line: its path and its contents. Key functions: info, folder_in_use, clear;
the last reports: keep_report, kept_report.

Does not import torch."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from magpy_core._compat.code_cache import CodeCache, limit, reports_folder, runs_folder, usual_folder
from magpy_core.limits import LIMITS


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
    return sum(CodeCache(folder).clear() for folder in (usual_folder(), runs_folder(), reports_folder()))


def keep_report(project: Path, text: str) -> None:
    """Keeps the report of a run in the folder ``project``, in place of the last one, where only the user can read it.
    Nothing is kept if the user's caches can't be written."""
    cache, file = CodeCache(reports_folder()), _report_of(project)
    if cache.refusal():
        return
    beside = file.with_suffix(f".{os.getpid()}")
    with suppress(OSError):
        beside.touch(mode=0o600)
        beside.write_text(text, encoding="utf-8")
        os.replace(beside, file)
        cache.prune(LIMITS.kept_reports)


def kept_report(project: Path) -> str | None:
    """What was kept for the folder, else for the nearest one above; None: nothing."""
    for folder in (project, *project.parents):
        with suppress(OSError, UnicodeDecodeError):
            return _report_of(folder).read_text(encoding="utf-8")
    return None


def _report_of(project: Path) -> Path:
    name = hashlib.sha256(os.fsencode(os.path.realpath(project))).hexdigest()
    return reports_folder() / f"{name}.json"
