"""The Python interpreter that runs the programs, where nobody has chosen one. Key functions: find_interpreter, of_project.

MagPy may be installed without torch (``pipx install magpy-lsp``). Programs then run in the environment of their project.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from magpy_core.runner.bootstrap import WITHOUT_FOLDER

_ENVIRONMENTS = (".venv", "venv")
_ACTIVE = ("VIRTUAL_ENV", "CONDA_PREFIX")
_ON_PATH = ("python3", "python")
_HAS_TORCH = f"{WITHOUT_FOLDER}import importlib.util\nraise SystemExit(importlib.util.find_spec('torch') is None)"
_ANSWERS_WITHIN_S = 20.0


def find_interpreter(python: str) -> str | None:
    """An executable file for a path, a name on PATH, or the folder of a virtual environment."""
    for candidate in (python, os.path.join(python, "bin", "python"), os.path.join(python, "Scripts", "python.exe")):
        if not os.path.isdir(candidate) and (found := shutil.which(candidate)):
            # Links are not resolved: a virtual environment's python is a link to an interpreter outside of it.
            return os.path.abspath(found)
    return None


def of_project(folder: Path, environ: Mapping[str, str] = os.environ) -> str | None:
    """The interpreter for the programs in ``folder``; None: this one, because it has torch or because no other is found.

    The active environment comes first, then the project's own (``.venv`` or ``venv`` in ``folder`` or above), then a Python
    on PATH that has torch.
    """
    if importlib.util.find_spec("torch") is not None:
        return None
    return next(_candidates(folder, environ), None)


def _candidates(folder: Path, environ: Mapping[str, str]) -> Iterator[str]:
    folder = Path(os.path.abspath(folder))
    environments = [Path(environ[name]) for name in _ACTIVE if environ.get(name)]
    environments += [place / name for place in (folder, *folder.parents) for name in _ENVIRONMENTS]
    for environment in environments:
        if (found := find_interpreter(str(environment))) is not None and not _is_of_this(found):
            yield found
    for place in environ.get("PATH", "").split(os.pathsep):
        for name in _ON_PATH:
            found = shutil.which(name, path=place)
            if found is not None and not _is_of_this(found) and _has_torch(found):
                yield os.path.abspath(found)


def _is_of_this(python: str) -> bool:
    """Whether it belongs to this environment, which has no torch. pre-commit activates the one that it has made."""
    return os.path.dirname(os.path.abspath(python)) == os.path.dirname(os.path.abspath(sys.executable))


def _has_torch(python: str) -> bool:
    try:
        done = subprocess.run(
            [python, "-c", _HAS_TORCH], stdin=subprocess.DEVNULL, capture_output=True, timeout=_ANSWERS_WITHIN_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):  # no interpreter, or one that hangs
        return False
    return done.returncode == 0
