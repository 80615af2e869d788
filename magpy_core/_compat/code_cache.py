"""The folder that stores compiled code between runs: its location, whether it can be used, its files.

torch unpickles these files or loads them as machine code, so only the user may have write access. A file that differs from
its record is removed before torch sees it. Key type: CodeCache. Does not import torch.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

LIMIT = 4 << 30
_RECORD = "magpy-sizes.json"  # the size of each complete file
_PRUNED = "magpy-pruned"
_OWN_FILES = frozenset({_RECORD, _PRUNED})
_LOCKS = "locks"
_RECENT_S = 600.0  # another process may still be writing a more recent file
_PRUNE_EVERY_S = 3600.0
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def usual_folder(environ: Mapping[str, str] = os.environ, platform: str = sys.platform) -> Path:
    """The folder in the user's caches on this platform."""
    home = Path(os.path.expanduser("~"))
    if platform == "win32":
        base = Path(environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif platform == "darwin":
        base = home / "Library" / "Caches"
    else:
        given = environ.get("XDG_CACHE_HOME", "")
        base = Path(given) if os.path.isabs(given) else home / ".cache"
    return base / "magpy" / "inductor"


def runs_folder() -> Path:
    """The folder beside it that keeps what runs have shown."""
    return usual_folder().parent / "runs"


def limit(environ: Mapping[str, str] = os.environ) -> int:
    """``MAGPY_CACHE_SIZE`` in bytes (``500M``, ``2G``); the default if it is unset or not a size."""
    found = re.fullmatch(r"(\d+)\s*([KMGT]?)i?B?", environ.get("MAGPY_CACHE_SIZE", "").strip(), re.IGNORECASE)
    return LIMIT if found is None else int(found[1]) * _UNITS[found[2].upper()]


class File(NamedTuple):
    """``location``: its path as text, since a folder may hold tens of thousands of files."""

    location: str
    size: int
    used: float

    @property
    def path(self) -> Path:
        return Path(self.location)


class CodeCache:
    """One folder. Other processes may use it, and remove files from it, at any time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def refusal(self) -> str:
        """Why the folder, which is created if necessary, can't be used; empty if it can."""
        if not self.folder.is_absolute():
            return "there is no home folder"
        try:
            self.folder.parent.parent.mkdir(parents=True, exist_ok=True)
            for folder in (self.folder.parent, self.folder):
                folder.mkdir(mode=0o700, exist_ok=True)
                if reason := _insecure(folder):
                    return reason
        except OSError as error:
            return f"{error.filename or self.folder}: {error.strerror}"
        return "" if os.access(self.folder, os.W_OK | os.X_OK) else f"{self.folder} can't be written"

    # -- files -------------------------------------------------------------------------------------------------

    def files(self) -> Iterator[File]:
        waiting = [str(self.folder)]
        while waiting:
            try:
                with os.scandir(waiting.pop()) as entries:
                    for entry in entries:
                        if entry.is_dir(follow_symlinks=False):
                            waiting.append(entry.path)
                        elif entry.name not in _OWN_FILES:
                            with contextlib.suppress(FileNotFoundError):
                                info = entry.stat(follow_symlinks=False)
                                yield File(entry.path, info.st_size, info.st_mtime)
            except (FileNotFoundError, NotADirectoryError):
                continue  # removed by another process

    def size(self) -> int:
        return sum(file.size for file in self.files())

    def entries(self) -> int:
        """The number of compiled graphs; a forward and its backward graph count as one."""
        return len({file.path.parent for file in self.files() if file.path.parent.parent.name == "aotautograd"})

    # -- complete files ----------------------------------------------------------------------------------------

    def remove_incomplete(self) -> int:
        """Removes files whose size differs from the recorded one, and returns their number. A killed process or a full disk
        leaves such files."""
        known, removed, now = self._recorded(), 0, time.time()
        for file in self.files():
            name = self._name(file)
            if name.startswith(_LOCKS + os.sep):
                continue
            if known is None:
                wrong = True  # the record itself is damaged
            elif name in known:
                wrong = file.size != known[name]
            elif now - file.used > _RECENT_S:
                wrong = True
            elif _is_library(name):  # empty while it is linked
                wrong = not _is_complete(file.path) and not self._is_being_built(file.path)
            else:
                wrong = not file.size
            if wrong:
                removed += _removed(file.path)
        return removed

    def record(self) -> None:
        """Records all files as complete: a compilation has just ended. Skips files that another process is linking."""
        known = self._recorded()
        before = known or {}
        sizes = {
            name: file.size
            for file in self.files()
            if not (name := self._name(file)).startswith(_LOCKS + os.sep)
            and not os.path.basename(name).startswith(".")
            and (not _is_library(name) or before.get(name) == file.size or _is_complete(file.path))
        }
        if sizes != known:
            _write(self.folder / _RECORD, json.dumps(sizes))

    def add(self, file: Path, text: str) -> bool:
        """Adds a complete file of ours; whether it could be written."""
        try:
            file.parent.mkdir(mode=0o700, exist_ok=True)
        except OSError:
            return False
        _write(file, text)
        self.record()
        return file.exists()

    def _recorded(self) -> dict[str, int] | None:
        """The recorded sizes; None if the record is damaged."""
        try:
            found = json.loads((self.folder / _RECORD).read_text())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) else None

    def _name(self, file: File) -> str:
        """Its path from the folder on."""
        return file.location[len(str(self.folder)) :].lstrip(os.sep)

    def _is_being_built(self, library: Path) -> bool:
        """Whether a process holds the lock that torch holds while it builds a library."""
        try:
            import fcntl

            with open(self.folder / _LOCKS / f"{library.name.split('.')[0]}.lock") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except (ImportError, OSError):
            return False
        return False

    # -- size --------------------------------------------------------------------------------------------------

    def prune(self, most: int, *, now: float | None = None) -> int:
        """If there are more than ``most`` bytes, removes the least recently used files down to four fifths of it; returns
        the number of bytes. Does nothing if any process did it within the last hour."""
        stamp, now = self.folder / _PRUNED, time.time() if now is None else now
        with contextlib.suppress(OSError):
            if 0 <= now - stamp.stat().st_mtime < _PRUNE_EVERY_S:
                return 0
        with contextlib.suppress(OSError):
            stamp.touch()
        files = sorted(self.files(), key=lambda file: file.used)
        total, freed = sum(file.size for file in files), 0
        if total <= most:
            return 0
        for file in files:
            if total - freed <= most * 4 // 5:
                break
            if _removed(file.path):
                freed += file.size
        return freed

    def clear(self) -> int:
        """Removes every file; returns the number of bytes. Folders stay: another process may be about to write there."""
        freed = sum(file.size for file in list(self.files()) if _removed(file.path))
        for name in _OWN_FILES:
            _removed(self.folder / name)
        return freed


def _insecure(folder: Path) -> str:
    if not hasattr(os, "geteuid"):
        return ""  # Windows: only the user can access local data
    info = folder.lstat()
    if not stat.S_ISDIR(info.st_mode):
        return f"{folder} is not a folder"
    if info.st_uid != os.geteuid():
        return f"{folder} belongs to another user"
    return f"{folder} can be written by others" if info.st_mode & 0o022 else ""


def _is_library(name: str) -> bool:
    return name.endswith(".so")


def _is_complete(library: Path) -> bool:
    """Whether a shared library is as long as its headers say: of its sections, and of the segments that are loaded, which
    tools that change a linked library put behind the others. Loading a truncated one can crash the process. Linkers write
    the headers last, or rename a complete file."""
    try:
        with open(library, "rb") as file:
            head = file.read(64)
            size = os.fstat(file.fileno()).st_size
            if head[:4] != b"\x7fELF":
                return size > 0 and sys.platform != "linux"
            if len(head) < 64 or head[4] != 2:
                return False
            order: Literal["little", "big"] = "little" if head[5] == 1 else "big"
            segments, sections = (int.from_bytes(head[a : a + 8], order) for a in (32, 40))
            length, count, each, number = (int.from_bytes(head[a : a + 2], order) for a in (54, 56, 58, 60))
            file.seek(segments)
            table = file.read(length * count)
    except OSError:
        return False
    if len(table) < length * count:
        return False
    starts = range(0, len(table), length) if length else ()
    ends = [sum(int.from_bytes(table[at + a : at + a + 8], order) for a in (8, 32)) for at in starts]
    return size >= max([sections + each * number, *ends])


def _removed(path: Path) -> bool:
    try:
        path.unlink()
    except OSError:  # another process was faster, or there is no permission
        return False
    return True


def _write(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(text)
        temporary.replace(path)
    except OSError:
        _removed(temporary)
