"""Finds the programs of a project that run a model. Key types: FoundPrograms; key functions: find_programs, program_of."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lsp_server.entrypoints import Entrypoint
from lsp_server.features.entrypoint import entrypoint_line

# Packages whose import makes a script one that runs a model.
_MODEL_PACKAGES = frozenset({"torch", "lightning", "pytorch_lightning", "transformers", "accelerate"})
_SKIPPED_FOLDERS = frozenset({"__pycache__", "build", "dist", "docs", "node_modules", "site-packages", "test", "tests"})
_SKIPPED_FILES = re.compile(r"(test_.*|.*_test|conftest|setup)\.py")
_TRAINS = re.compile(r"\.backward\(|\.fit\(|\bTrainer\(")
_LONGEST, _MOST_FILES, _MOST_PROGRAMS = 1_000_000, 5_000, 8


@dataclass(frozen=True)
class FoundPrograms:
    """``chosen``: the programs to configure. ``others``: scripts that run a model but are left out, as they don't train."""

    chosen: list[Entrypoint]
    others: list[str]


def find_programs(root: Path) -> FoundPrograms:
    """The entrypoints below ``root``: those that train if there are any, else all; the ones nearest to ``root``."""
    texts: dict[Path, str] = {}
    for file in _python_files(root):
        if (text := _read(file)) is not None:
            texts[file] = text
    runnable = [file for file, text in texts.items() if _runs_a_model(file, text, texts)]
    runnable.sort(key=lambda file: (len(file.relative_to(root).parts), file))
    training = [file for file in runnable if _TRAINS.search(texts[file])]
    chosen = (training or runnable)[:_MOST_PROGRAMS]
    others = [file.relative_to(root).as_posix() for file in runnable if file not in chosen]
    names = _names(chosen, root)
    return FoundPrograms([program_of(file, root, names[file]) for file in chosen], others)


def program_of(file: Path, root: Path, name: str = "") -> Entrypoint:
    """How to run ``file``: as a script, or as a module if it imports from its own package."""
    relative = Path(os.path.relpath(file, root)).as_posix()
    name = name or file.stem
    package = _package_folder(file)
    if package is None or not _has_relative_import(_read(file) or ""):
        return Entrypoint(name, program=relative)
    parts = file.relative_to(package.parent).with_suffix("").parts
    above = Path(os.path.relpath(package.parent, root)).as_posix()
    return Entrypoint(name, module=".".join(parts).removesuffix(".__main__"), cwd=None if above == "." else above)


def _python_files(root: Path) -> Iterator[Path]:
    """Python files below ``root``, without tests, hidden folders and virtual environments."""
    left = _MOST_FILES
    for folder, folders, files in os.walk(root):
        if "pyvenv.cfg" in files:
            folders.clear()
            continue
        folders[:] = sorted(f for f in folders if f not in _SKIPPED_FOLDERS and not f.startswith("."))
        for file in sorted(files):
            if file.endswith(".py") and not _SKIPPED_FILES.fullmatch(file):
                if left == 0:
                    return
                left -= 1
                yield Path(folder, file)


def _read(file: Path) -> str | None:
    """The text of a source file; None if it is very long, or can't be read: such a file is not proposed."""
    try:
        return file.read_text(encoding="utf-8") if file.stat().st_size <= _LONGEST else None
    except (OSError, UnicodeDecodeError):
        return None


def _runs_a_model(file: Path, text: str, texts: dict[Path, str]) -> bool:
    if entrypoint_line(text.splitlines()) is None:
        return False
    imported = _imported(text)
    if imported & _MODEL_PACKAGES:
        return True
    beside = [file.parent / f"{name}.py" for name in imported]
    return any(_imported(texts[other]) & _MODEL_PACKAGES for other in beside if other in texts and other != file)


def _imported(text: str) -> set[str]:
    """The first part of each module that a source imports, or of each name from its own package."""
    found: set[str] = set()
    for node in _nodes(text):
        if isinstance(node, ast.Import):
            found.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.split(".")[0])
        elif isinstance(node, ast.ImportFrom):
            found.update(alias.name for alias in node.names)
    return found


def _has_relative_import(text: str) -> bool:
    return any(isinstance(node, ast.ImportFrom) and node.level > 0 for node in _nodes(text))


def _nodes(text: str) -> Iterator[ast.AST]:
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return iter(())  # a file that Python can't read imports nothing
    return ast.walk(module)


def _package_folder(file: Path) -> Path | None:
    """The outermost package that contains ``file``."""
    folder, found = file.parent, None
    while (folder / "__init__.py").exists():
        folder, found = folder.parent, folder
    return found


def _names(files: list[Path], root: Path) -> dict[Path, str]:
    """A name for each file: the shortest end of its path that no other file has."""
    paths = {file: file.relative_to(root).with_suffix("").parts for file in files}
    names: dict[Path, str] = {}
    for file, parts in paths.items():
        others = [other for key, other in paths.items() if key != file]
        lengths = (n for n in range(1, len(parts)) if not any(other[-n:] == parts[-n:] for other in others))
        names[file] = "-".join(parts[-next(lengths, len(parts)) :])
    return names
