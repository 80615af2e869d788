"""A copy of the folder that a program works in, fresh for each run, at one path for all runs. Key type: WorkingCopy."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from magpy_core.limits import LIMITS

_SKIPPED = frozenset({".git", ".hg", ".svn", "__pycache__", "node_modules", ".mypy_cache", ".ruff_cache", ".pytest_cache"})


class WorkingCopy:
    """``path``: where the program runs. ``why_not``: why there is no copy, so that it runs in ``folder`` itself."""

    def __init__(self, folder: Path, base: Path, *, wanted: bool = True) -> None:
        self.folder = folder.resolve()
        self.why_not = _too_large(self.folder) if wanted else "the program ran in its own folder"
        self.path = self.folder if self.why_not else base / "work" / (self.folder.name or "work")
        self._before = base / "before"  # a user may edit files while the runs go by
        if not self.why_not:
            shutil.copytree(self.folder, self._before, symlinks=True, ignore=_ignored)

    def prepare(self) -> None:
        """Makes the folder what it was before the first run."""
        if not self.why_not:
            shutil.rmtree(self.path, ignore_errors=True)
            shutil.copytree(self._before, self.path, symlinks=True)

    def keep(self, into: Path) -> None:
        """Moves the files that the last run has written or changed to ``into``."""
        if self.why_not:
            return
        for path in _files(self.path):
            name = path.relative_to(self.path)
            if _same(path, self._before / name):
                continue
            target = into / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(path, target)

    def inside(self, script: str, cwd: str | None) -> str:
        """The path of the script in a run: relative where it lies in the folder, so that the copy of it runs."""
        absolute = Path(os.path.abspath(os.path.join(cwd or "", script)))
        real = absolute.parent.resolve() / absolute.name
        return str(real.relative_to(self.folder)) if real.is_relative_to(self.folder) else str(absolute)


def _ignored(folder: str, names: list[str]) -> list[str]:
    """What a program does not work on: a version control's files, caches, virtual environments, sockets and pipes."""
    paths = {name: os.path.join(folder, name) for name in names}
    return [
        name
        for name, path in paths.items()
        if name in _SKIPPED
        or os.path.exists(os.path.join(path, "pyvenv.cfg"))
        or not (os.path.islink(path) or os.path.isfile(path) or os.path.isdir(path))
    ]


def _files(folder: Path) -> Iterator[Path]:
    """Regular files, without those that are not copied."""
    for here, folders, names in os.walk(folder):
        skipped = set(_ignored(here, [*folders, *names]))
        folders[:] = [one for one in folders if one not in skipped]
        for name in names:
            path = Path(here, name)
            if name not in skipped and not path.is_symlink():
                yield path


def _same(path: Path, original: Path) -> bool:
    """Whether a file is as it was copied."""
    try:
        now, before = path.stat(), original.stat()
    except OSError:
        return False
    return now.st_size == before.st_size and now.st_mtime_ns == before.st_mtime_ns


def _too_large(folder: Path) -> str:
    size = count = 0
    for path in _files(folder):
        count += 1
        size += path.stat().st_size
        if size > LIMITS.copied_bytes:
            return f"the working folder has more than {LIMITS.copied_bytes >> 20} MB"
        if count > LIMITS.copied_files:
            return f"the working folder has more than {LIMITS.copied_files:,} files"
    return ""
