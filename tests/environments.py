"""Interpreters with few packages, made in a second and without a network. Key functions: torch_only, light.

python -m tests.environments torch-only FOLDER     # prints its Python
"""

from __future__ import annotations

import argparse
import tomllib
from pathlib import Path

from release.packages import site_packages, with_packages

ROOT = Path(__file__).resolve().parents[1]


def torch_only(folder: Path) -> Path:
    """The Python of a new environment with torch, and without MagPy and what its server needs."""
    return with_packages(folder, ["torch", "numpy"])


def light(folder: Path) -> Path:
    """The Python of a new environment with this MagPy as ``pip install magpy-lsp`` gives it: without torch."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    python = with_packages(folder, project["dependencies"])
    (site_packages(folder) / "magpy.pth").write_text(f"{ROOT}\n")
    return python


def main() -> None:
    parser = argparse.ArgumentParser(description="Makes an environment with few packages.")
    parser.add_argument("kind", choices=("torch-only", "light"))
    parser.add_argument("folder", type=Path)
    args = parser.parse_args()
    print((torch_only if args.kind == "torch-only" else light)(args.folder.absolute()))


if __name__ == "__main__":
    main()
