"""The folder that stores compiled code between runs: its location, whether it can be used, its files.

torch unpickles these files or loads them as machine code, so only the user may have write access. A file that differs from
its record is removed before torch sees it. Key type: CodeCache. Does not import torch.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import stat
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

LIMIT = 4 << 30
_RECORD = "magpy-sizes.json"  # size and digest of each complete file
_NOT_LOADED = (".gch", ".pch")  # large, and a compiler reads them, which notices damage
_PRUNED = "magpy-pruned"
SOURCES = "magpy-sources"  # a byte for each C++ source that was compiled without a precompiled header
_OWN_FILES = frozenset({_RECORD, _PRUNED, SOURCES})
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


def reports_folder() -> Path:
    """The folder beside it with the report of each project's last run."""
    return usual_folder().parent / "reports"


def differences_folder() -> Path:
    """The folder beside it with files that show where compiled code was wrong."""
    return usual_folder().parent / "differences"


def loaded_folder(folder: Path) -> Path:
    """The folder beside ``folder`` where running processes say which files of it they have loaded."""
    return folder.parent / "loaded"


def limit(environ: Mapping[str, str] = os.environ) -> int:
    """``MAGPY_CACHE_SIZE`` in bytes (``500M``, ``2G``); the default if it is unset or not a size."""
    found = re.fullmatch(r"(\d+)\s*([KMGT]?)i?B?", environ.get("MAGPY_CACHE_SIZE", "").strip(), re.IGNORECASE)
    return LIMIT if found is None else int(found[1]) * _UNITS[found[2].upper()]


def digest_of(file: Path) -> str:
    """Of its content. Raises OSError if it can't be read."""
    with open(file, "rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


class _Known(NamedTuple):
    """What is recorded of a file. ``digest``: empty if none is."""

    size: int
    digest: str


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
        self._read: tuple[tuple[int, ...], dict[str, _Known]] | None = None

    def refusal(self) -> str:
        """Why the folder, which is created if necessary, can't be used; empty if it can."""
        if not self.folder.is_absolute():
            return "there is no home folder"
        try:
            self.folder.parent.parent.mkdir(parents=True, exist_ok=True)
            for folder in (self.folder.parent, self.folder):
                folder.mkdir(mode=0o700, exist_ok=True)
                if reason := writable_by_others(folder):
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

    # -- crashes -----------------------------------------------------------------------------------------------

    def is_loading(self, files: Iterable[Path]) -> None:
        """This process is about to load ``files`` and to run what is in them: if it crashes, they are removed."""
        marker = self._marker(os.getpid())
        known = _read_marker(marker)
        names = [os.path.relpath(file, self.folder) for file in files]
        with contextlib.suppress(OSError):
            marker.parent.mkdir(mode=0o700, exist_ok=True)
            _write(marker, json.dumps([known[0], sorted({*known[1], *names})]))

    def has_loaded(self) -> None:
        """What was being loaded has been."""
        marker = self._marker(os.getpid())
        known = _read_marker(marker)
        _write(marker, json.dumps([sorted({*known[0], *known[1]}), []]))

    def ended(self, pid: int, *, crashed: bool) -> int:
        """The process has ended. Returns how many files were removed that it had loaded, because it crashed."""
        marker = self._marker(pid)
        loaded, loading = _read_marker(marker)
        _removed(marker)
        return self._drop([*loaded, *loading]) if crashed else 0

    def remove_half_loaded(self) -> int:
        """Removes files that a process was loading when it ended without a word; returns their number."""
        removed = 0
        for marker in list(loaded_folder(self.folder).glob("*.json")):
            if marker.stem.isdecimal() and not _is_running(int(marker.stem)):
                removed += self._drop(_read_marker(marker)[1])
                _removed(marker)
        return removed

    def _marker(self, pid: int) -> Path:
        return loaded_folder(self.folder) / f"{pid}.json"

    def _drop(self, names: Iterable[str]) -> int:
        paths = [self.folder / name for name in names if not name.startswith("..") and not os.path.isabs(name)]
        inside = [each for path in paths if path.is_dir() for each in path.iterdir()]
        return sum(map(_removed, [*paths, *inside]))

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
                wrong = file.size != known[name].size
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
        files = {
            name: self._known(file, before.get(name))
            for file in self.files()
            if not (name := self._name(file)).startswith(_LOCKS + os.sep)
            and not os.path.basename(name).startswith(".")
            and (not _is_library(name) or (name in before and before[name].size == file.size) or _is_complete(file.path))
        }
        if files != known:
            _write(self.folder / _RECORD, json.dumps(files))

    def add(self, file: Path, text: str) -> bool:
        """Adds a complete file of ours; whether it could be written."""
        try:
            file.parent.mkdir(mode=0o700, exist_ok=True)
        except OSError:
            return False
        _write(file, text)
        self.record()
        return file.exists()

    @staticmethod
    def keeps(name: str) -> bool:
        """Whether a file of this name, from a folder on, is code that is kept, and not one of its own files."""
        return name not in _OWN_FILES and not name.startswith(_LOCKS + "/") and not name.endswith(_NOT_LOADED)

    def undamaged(self) -> list[str]:
        """The names of files that are as they were recorded."""
        found = [(name, known) for name, known in (self._recorded() or {}).items() if known.digest and self.keeps(name)]
        return sorted(name for name, known in found if self._digest(name) == known.digest)

    def _digest(self, name: str) -> str:
        """Empty if it can't be read, or is a link."""
        path = self.folder / name
        with contextlib.suppress(OSError):
            return "" if path.is_symlink() else digest_of(path)
        return ""

    def adopt(self, files: Mapping[str, Path]) -> None:
        """Moves complete files, which are on the same disk, to these names here, in place of others, and records them.
        Raises OSError."""
        self.move_in(files)
        known = self._recorded() or {}
        _write(self.folder / _RECORD, json.dumps({name: entry for name, entry in known.items() if name not in files}))
        self.record()

    def move_in(self, files: Mapping[str, Path]) -> None:
        """The same for a folder without a record."""
        for name, file in files.items():
            folder = self.folder
            for part in Path(name).parent.parts:
                folder = folder / part
                folder.mkdir(mode=0o700, exist_ok=True)
                if folder.is_symlink():
                    raise NotADirectoryError(errno.ENOTDIR, "it is a link", str(folder))
            file.chmod(0o600)
            os.replace(file, self.folder / name)

    def removed_if_damaged(self, path: Path) -> bool:
        """Looks at a file that is about to be loaded or executed, and removes it if its content differs from its record: a
        failing disk leaves such files."""
        recorded = (self._recorded() or {}).get(os.path.relpath(path, self.folder))
        if recorded is None or not recorded.digest:
            return False
        try:
            damaged = digest_of(path) != recorded.digest
        except OSError:
            return False
        return damaged and _removed(path)

    def _known(self, file: File, before: _Known | None) -> _Known:
        if before is not None and before.size == file.size and before.digest:
            return before  # not what it holds now, which may be damaged
        digest = ""
        if not file.location.endswith(_NOT_LOADED):
            with contextlib.suppress(OSError):
                digest = digest_of(file.path)
        return _Known(file.size, digest)

    def _recorded(self) -> dict[str, _Known] | None:
        """What is recorded of each file; None if the record is damaged."""
        record = self.folder / _RECORD
        try:
            state = record.stat()
            if self._read is not None and self._read[0] == (state.st_mtime_ns, state.st_ino, state.st_size):
                return self._read[1]
            found = json.loads(record.read_text())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError):
            return None
        if not isinstance(found, dict):
            return None
        try:  # an earlier version recorded sizes only
            files = {name: _Known(known, "") if type(known) is int else _Known(*known) for name, known in found.items()}
        except TypeError:
            return None
        self._read = (state.st_mtime_ns, state.st_ino, state.st_size), files
        return files

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


def writable_by_others(folder: Path) -> str:
    """How another user could write into a folder; empty: only the user can. Raises OSError if it can't be asked."""
    if not hasattr(os, "geteuid"):
        return ""  # Windows: only the user can access local data
    info = folder.lstat()
    if not stat.S_ISDIR(info.st_mode):
        return f"{folder} is not a folder"
    if info.st_uid != os.geteuid():
        return f"{folder} belongs to another user"
    return f"{folder} can be written by others" if info.st_mode & 0o022 else ""


def _read_marker(marker: Path) -> tuple[list[str], list[str]]:
    """What a process has loaded, and what it is loading."""
    try:
        loaded, loading = json.loads(marker.read_text())
        return [str(name) for name in loaded], [str(name) for name in loading]
    except (OSError, ValueError, TypeError):
        return [], []


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


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
