"""What one run of a program has left in a folder: states, printed text, files. Key type: RunFiles."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

END = "end"


class RunFiles:
    """``folder`` has ``index.json``, the states and the updates (runner/recorder.py), ``origin.json`` where compiled code
    differed, ``stdout``, ``stderr``, and ``files``, which the run has written or changed in its working folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        index = folder / "index.json"
        self._index: dict[str, Any] = json.loads(index.read_text("ascii")) if index.exists() else {}

    @property
    def labels(self) -> list[str]:
        """Steps after which the state was saved, in order, and the end."""
        found = list(self._index.get("states", {}))
        return [*sorted((one for one in found if one != END), key=int), *([END] if END in found else [])]

    @property
    def steps(self) -> int:
        return int(self._index.get("steps", 0))

    @property
    def error(self) -> str:
        """Why a state could not be saved."""
        return str(self._index.get("error", ""))

    def state(self, label: str) -> dict[str, Any]:
        import torch

        loaded: dict[str, Any] = torch.load(self.folder / self._index["states"][label], weights_only=True)
        return loaded

    def updates(self, label: str) -> Any:
        """What each optimizer has done in the step (updates.py); None: it was not saved."""
        import torch

        file = self._index.get("updates", {}).get(label)
        return None if file is None else torch.load(self.folder / file, weights_only=True)

    @functools.cached_property
    def first_difference(self) -> dict[str, Any]:
        """``origin`` and ``why``, as verification/origin.py has found them in this run; empty: no call differed."""
        path = self.folder / "origin.json"
        found: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
        return found

    def printed(self, stream: str) -> str:
        path = self.folder / stream
        return path.read_bytes().decode("utf-8", errors="backslashreplace") if path.exists() else ""

    @functools.cached_property
    def files(self) -> dict[str, Path]:
        top = self.folder / "files"
        return {path.relative_to(top).as_posix(): path for path in sorted(top.rglob("*")) if path.is_file()}


def runs_in(base: Path) -> tuple[RunFiles, RunFiles, RunFiles | None, Sequence[RunFiles]]:
    """The eager run, the compiled one, the repeated eager one if there is one, and those with noise."""
    again = base / "again"
    noisy = sorted(base.glob("noise-*"))
    return (
        RunFiles(base / "eager"),
        RunFiles(base / "compiled"),
        RunFiles(again) if again.exists() else None,
        [RunFiles(one) for one in noisy],
    )
