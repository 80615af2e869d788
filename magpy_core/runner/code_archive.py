"""Compiled code in one file, for other machines: what is in it, for which environment, and whether it may be loaded.

An archive is a zip file of the folders of compiled code and of what runs have shown, with a manifest: the environment that
the code is for, and size and digest of each file. It holds machine code and pickles, so loading one is running its author's
code. Whoever damages or extends one by accident is told; nothing is written before all of it has been checked.
Key functions: save, load. Does not import torch.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from magpy_core import __version__
from magpy_core._compat.code_cache import CodeCache, limit, runs_folder, usual_folder

_FORMAT = 1
_CODE, _RUNS = "inductor", "runs"  # the names of the folders in archives
_MANIFEST = "magpy-compiled-code.json"
_LARGEST_MANIFEST = 64 << 20
_CHUNK = 1 << 20
_SHOWN = 5

Environment = Mapping[str, str]
"""What code depends on, by names that users know: see `environment` of `_compat/torch/compiler_state.py`."""


class ArchiveError(Exception):
    """Why an archive can't be made or loaded, as a sentence for the user."""


@dataclass(frozen=True)
class Contents:
    """What was saved or loaded. ``size`` is that of the files, not of the archive."""

    files: int
    size: int
    environment: Environment


def save(archive: Path, environment: Environment, compiler: str) -> Contents:
    """Makes an archive of all complete files. ``compiler``: is only noted."""
    code, runs = _folders()
    files = {f"{_CODE}/{name}": code.folder / name for name in code.undamaged()}
    if not files:
        raise ArchiveError(f"There is no compiled code in {code.folder}: `magpy-lsp compile` makes some.")
    files |= {f"{_RUNS}/{file.name}": file for file in runs.folder.glob("*.json")}
    beside = None
    try:
        handle, beside = tempfile.mkstemp(prefix=f".{archive.name}.", dir=archive.parent)
        with os.fdopen(handle, "wb") as out, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as zipped:
            known = {name: _packed(zipped, name, path) for name, path in sorted(files.items()) if _is_harmless(name)}
            found = {name: entry for name, entry in known.items() if entry is not None}
            about = {"format": _FORMAT, "magpy": __version__, "environment": environment, "compiler": compiler}
            zipped.writestr(_entry(_MANIFEST), json.dumps({**about, "files": found}, indent=1))
        os.replace(beside, archive)
    except OSError as error:
        if beside is not None:
            Path(beside).unlink(missing_ok=True)
        raise ArchiveError(f"{archive} can't be written: {error.strerror or error}.") from None
    return Contents(len(found), sum(size for size, _ in found.values()), environment)


def load(archive: Path, environment: Environment) -> Contents:
    """Puts the files of an archive into the user's folders, if all of them are as its manifest says, and the code is for
    this ``environment``."""
    code, runs = _folders()
    with _opened(archive) as zipped:
        files = _checked(zipped, environment)
        staged = Path(tempfile.mkdtemp(prefix="loading-", dir=usual_folder().parent))  # only the user can enter it
        try:
            for number, (name, (size, digest)) in enumerate(files.items()):
                _unpack(zipped, name, staged / str(number), size, digest)
            code.adopt(_below(_CODE, staged, files))
            runs.move_in(_below(_RUNS, staged, files))
        except OSError as error:
            raise ArchiveError(f"{error.filename or usual_folder()} can't be written: {error.strerror or error}.") from None
        finally:
            shutil.rmtree(staged, ignore_errors=True)
    return Contents(len(files), sum(size for size, _ in files.values()), environment)


def _below(prefix: str, staged: Path, files: Iterable[str]) -> dict[str, Path]:
    """The staged files that belong into one folder, by their names there."""
    found = {name: staged / str(number) for number, name in enumerate(files)}
    return {name.removeprefix(f"{prefix}/"): path for name, path in found.items() if name.startswith(f"{prefix}/")}


def _folders() -> tuple[CodeCache, CodeCache]:
    """Of compiled code, and of what runs have shown. Raises ArchiveError if one can't be used."""
    if given := os.environ.get("TORCHINDUCTOR_CACHE_DIR"):
        raise ArchiveError(
            f"TORCHINDUCTOR_CACHE_DIR is set, so compiled code is kept in {given}: unset it, or copy that folder."
        )
    folders = CodeCache(usual_folder()), CodeCache(runs_folder())
    for cache in folders:
        if refusal := cache.refusal():
            raise ArchiveError(f"The folder of compiled code can't be used: {refusal}.")
    return folders


# -- writing -------------------------------------------------------------------------------------------------------------


def _entry(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)  # always of the same date: the same files make the same archive
    info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, (stat.S_IFREG | 0o600) << 16
    return info


def _packed(zipped: zipfile.ZipFile, name: str, path: Path) -> tuple[int, str] | None:
    """Size and digest of the file; None if another process has removed it."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    zipped.writestr(_entry(name), data)
    return len(data), hashlib.sha256(data).hexdigest()


# -- reading -------------------------------------------------------------------------------------------------------------


@contextmanager
def _opened(archive: Path) -> Iterator[zipfile.ZipFile]:
    try:
        file = open(archive, "rb")
    except OSError as error:
        raise ArchiveError(f"{archive} can't be read: {error.strerror or error}.") from None
    with file:
        if os.fstat(file.fileno()).st_mode & 0o022:
            raise ArchiveError(f"{archive} can be written by others, who could put their code into it: `chmod go-w` first.")
        try:
            zipped = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, ValueError, NotImplementedError):
            raise ArchiveError(f"{archive} is not an archive of compiled code, or has been cut off.") from None
        with zipped:
            yield zipped


def _checked(zipped: zipfile.ZipFile, environment: Environment) -> dict[str, tuple[int, str]]:
    """Size and digest of each file, if the names and sizes are harmless and the code is for this environment."""
    manifest = _manifest(zipped)
    if wrong := _differences(manifest.get("environment"), environment):
        raise ArchiveError("The code is for another environment: " + "; ".join(wrong) + ".")
    try:
        files = {str(name): (int(size), str(digest)) for name, (size, digest) in manifest["files"].items()}
    except (KeyError, TypeError, ValueError, AttributeError):
        raise ArchiveError(f"The archive is damaged: {_MANIFEST}.") from None
    entries = [info for info in zipped.infolist() if info.filename != _MANIFEST]
    names = [info.filename for info in entries]
    if len(zipped.infolist()) != len(entries) + 1 or len(set(names)) != len(names):
        raise ArchiveError("The archive has several files of one name.")
    for info in entries:
        mode = info.external_attr >> 16
        if not _is_harmless(info.filename):
            raise ArchiveError(f"The archive has a file with a name that compiled code never has: {info.filename!r}.")
        if info.is_dir() or (stat.S_IFMT(mode) and not stat.S_ISREG(mode)):
            raise ArchiveError(f"The archive has a link or something else that is no file: {info.filename!r}.")
        if info.filename not in files:
            raise ArchiveError(f"The archive has a file that its list does not have: {info.filename!r}.")
        if info.file_size != files[info.filename][0]:
            raise ArchiveError(f"The archive is damaged: {info.filename} has another size.")
    if missing := sorted(files.keys() - set(names)):
        raise ArchiveError(f"The archive is damaged: {missing[0]} is missing.")
    if (size := sum(size for size, _ in files.values())) > limit():
        raise ArchiveError(f"The archive has {size:,} bytes of code, more than the folder may have (MAGPY_CACHE_SIZE).")
    return files


def _manifest(zipped: zipfile.ZipFile) -> dict[str, Any]:
    try:
        info = zipped.getinfo(_MANIFEST)
    except KeyError:
        raise ArchiveError(f"{zipped.filename or 'The file'} is not an archive of compiled code.") from None
    if info.file_size > _LARGEST_MANIFEST:
        raise ArchiveError(f"The archive is damaged: {_MANIFEST} is too large.")
    try:
        with zipped.open(info) as opened:
            found = json.loads(opened.read(_LARGEST_MANIFEST))
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, RuntimeError, NotImplementedError):
        raise ArchiveError(f"The archive is damaged: {_MANIFEST}.") from None
    if not isinstance(found, dict) or found.get("format") != _FORMAT:
        raise ArchiveError("The archive was made by another version of MagPy, in a format that this one does not read.")
    return found


def _is_harmless(name: str) -> bool:
    """Whether it is that of a file in one of our folders, as we write it."""
    prefix, _, rest = name.partition("/")
    parts = rest.split("/")
    if any(not part or part.startswith(".") or not part.isprintable() or set(part) & set('\\:*?"<>|') for part in parts):
        return False
    if prefix == _RUNS:
        return len(parts) == 1 and rest.endswith(".json")
    return prefix == _CODE and CodeCache.keeps(rest)


def _differences(given: Any, here: Environment) -> list[str]:
    """What differs, each as a text with both values."""
    if not isinstance(given, dict):
        return ["it is not named"]
    return [
        _difference(name, str(given.get(name, "not named")), here.get(name, "not named"))
        for name in sorted({*map(str, given), *here})
        if given.get(name) != here.get(name)
    ]


def _difference(name: str, given: str, here: str) -> str:
    theirs, ours = set(given.split()), set(here.split())
    if len(theirs) + len(ours) <= 2 * _SHOWN:
        return f"{name} {given}, and here it is {here}"
    parts = [("it has", sorted(theirs - ours)), ("this machine has", sorted(ours - theirs))]
    texts = [f"{who} {' '.join(found[:_SHOWN])}{' ...' * (len(found) > _SHOWN)}" for who, found in parts if found]
    return f"{name} (only {', only '.join(texts)})"


def _unpack(zipped: zipfile.ZipFile, name: str, target: Path, size: int, digest: str) -> None:
    """Raises ArchiveError if the file is not as the manifest says; never writes more than ``size`` bytes."""
    try:
        with zipped.open(name) as source, open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
            found = _copied(source, out, size)
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError):
        found = None
    if found is None or found != digest:
        raise ArchiveError(f"The archive is damaged: {name}.")


def _copied(source: IO[bytes], target: IO[bytes], size: int) -> str | None:
    """The digest of what was copied; None if there was more than ``size`` bytes."""
    digest = hashlib.sha256()
    while chunk := source.read(_CHUNK):
        size -= len(chunk)
        if size < 0:
            return None
        digest.update(chunk)
        target.write(chunk)
    return digest.hexdigest()
