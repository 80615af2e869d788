"""The GitHub workflow that ``magpy-lsp init`` writes. Key functions: workflow_file, workflow_text."""

from __future__ import annotations

import json
import os
import sys
import tomllib
from pathlib import Path

from magpy_core import __version__
from magpy_core.runner.bootstrap import SUPPORTED_TORCH

_TEXT = """\
# Runs the programs of [tool.magpy] for a few steps; fails on graph breaks and other findings that are not in the baseline.
name: MagPy

on: [push, pull_request]

permissions:
  contents: read

jobs:
  check:
    runs-on: ubuntu-latest
    timeout-minutes: 30{folder}
    steps:
      - uses: actions/checkout@11bd71901bbe5b1630ceea73d27597364c9af683 # v4.2.2
        with:
          persist-credentials: false
      - uses: actions/setup-python@a26af69be951a213d495a4c3e4e4022e16d87065 # v5.6.0
        with:
          python-version: "{python}"
      # The build of torch for CPUs, which is much smaller.
      - run: python -m pip install "torch{torch}" --index-url https://download.pytorch.org/whl/cpu
      - run: {packages}
      - run: magpy-lsp check --format github
"""
_FOLDER = """
    defaults:
      run:
        working-directory: {}"""


def workflow_file(root: Path) -> Path:
    """Where GitHub looks for it: at the top of the repository that contains ``root``."""
    return _repository(root) / ".github" / "workflows" / "magpy.yml"


def workflow_text(root: Path) -> str:
    """The workflow, with the commands that install the project's packages."""
    below = Path(os.path.relpath(root, _repository(root))).as_posix()
    packages = ["python -m pip install"]
    if (root / "requirements.txt").exists():
        packages.append("-r requirements.txt")
    elif (root / "setup.py").exists() or _is_package(root / "pyproject.toml"):
        packages.append("-e .")
    first, end = (".".join(map(str, version)) for version in SUPPORTED_TORCH)
    return _TEXT.format(
        folder="" if below == "." else _FOLDER.format(json.dumps(below)),
        python=f"{sys.version_info.major}.{sys.version_info.minor}",
        torch=f">={first},<{end}",
        packages=" ".join([*packages, f"magpy-lsp=={__version__}"]),
    )


def _repository(root: Path) -> Path:
    return next((folder for folder in (root, *root.parents) if (folder / ".git").exists()), root)


def _is_package(pyproject: Path) -> bool:
    """Whether pip can install the project: its file has a table ``[project]`` or ``[build-system]``."""
    try:
        document = tomllib.loads(pyproject.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return False
    return "project" in document or "build-system" in document
