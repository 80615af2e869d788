"""Selects the files of a checkout in hash order and runs them. Key functions: public_files, sweep."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.sweeps.parent import ROOT, read
from benchmarks.sweeps.parent import sweep as sweep_requests

__all__ = ["ROOT", "public_files", "read", "sweep"]


def _digest(name: str) -> bytes:
    return hashlib.sha256(f"parity-split-v1:{name}".encode()).digest()


def public_files(checkout: Path) -> list[Path]:
    """The public half of the files in the order of their hashes, so that any slice is a random sample."""
    files = (checkout / "generated").glob("test_*.py")
    return sorted((f for f in files if _digest(f.name)[0] % 2 == 0), key=lambda f: _digest(f.name))


def sweep(
    files: list[Path],
    results: Path,
    engines: list[str],
    jobs: int,
    case: int | None,
    report_progress: Callable[[dict[str, Any]], None],
) -> None:
    """Runs the files that ``results`` lacks. A file counts as done once its last case is written."""
    requests = [{"name": path.name, "path": str(path.resolve()), "engines": engines, "case": case} for path in files]
    sweep_requests("benchmarks.paritybench.nest", requests, results, jobs, report_progress)
