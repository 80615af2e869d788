"""Supported versions of Python and torch. Key type: UnsupportedVersion."""

from __future__ import annotations

import functools
import importlib
import re
import sys

from magpy_core.distribution import DISTRIBUTION

PYTHON_VERSIONS: tuple[tuple[int, int], ...] = ((3, 11), (3, 12), (3, 13), (3, 14))
TORCH_MIN: tuple[int, int] = (2, 11)
TORCH_MAX: tuple[int, int] = (2, 15)

PY312: bool = sys.version_info >= (3, 12)
PY313: bool = sys.version_info >= (3, 13)
PY314: bool = sys.version_info >= (3, 14)


class UnsupportedVersion(RuntimeError):
    """MagPy does not support the running Python or torch; the message lists supported versions."""


def _torch_release(version: str) -> tuple[int, int] | None:
    match = re.match(r"(\d+)\.(\d+)", version)
    return (int(match[1]), int(match[2])) if match else None


def check(python: tuple[int, int], implementation: str, torch_version: str) -> None:
    """Raise UnsupportedVersion unless this combination is supported (the pure part of :func:`check_versions`)."""
    if implementation != "cpython" or python not in PYTHON_VERSIONS:
        low, high = (f"{major}.{minor}" for major, minor in (PYTHON_VERSIONS[0], PYTHON_VERSIONS[-1]))
        raise UnsupportedVersion(
            f"MagPy needs CPython {low} to {high}, but this is {implementation} {python[0]}.{python[1]}: "
            "run it with a supported interpreter (the --python option)."
        )
    release = _torch_release(torch_version)
    if release is None or not TORCH_MIN <= release <= TORCH_MAX:
        low, high = (f"{major}.{minor}" for major, minor in (TORCH_MIN, TORCH_MAX))
        raise UnsupportedVersion(
            f"MagPy needs torch {low} to {high}, but this is torch {torch_version}: "
            f"install a supported one (pip install 'torch>={low},<{TORCH_MAX[0]}.{TORCH_MAX[1] + 1}')."
        )


@functools.cache
def check_versions() -> None:
    """Raise UnsupportedVersion, in one sentence, if the running Python or torch is not supported."""
    # no import statement: the parent process of the runner uses this module and must not depend on torch
    try:
        torch = importlib.import_module("torch")
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        install = f"{sys.executable} -m pip install '{DISTRIBUTION}[engine]'"
        raise UnsupportedVersion(f"MagPy's engine needs torch, which is not installed: run `{install}`.") from None
    check(sys.version_info[:2], sys.implementation.name, str(torch.__version__))
