"""Says whether every file that names the version names this one, and whether a tag does.

python -m release.version v0.1.0
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_MODULE = re.compile(r'^__version__ = "([^"]+)"$', re.MULTILINE)
_RECIPE = re.compile(r'^  version: "([^"]+)"$', re.MULTILINE)


def versions() -> dict[str, str]:
    """What each file says."""
    manifest = json.loads(_text("vscode-extension/package.json"))
    mirror = tomllib.loads(_text("ci/pre-commit-mirror/pyproject.toml"))["project"]
    return {
        "magpy_core/__init__.py": _found(_MODULE, "magpy_core/__init__.py"),
        "pyproject.toml": tomllib.loads(_text("pyproject.toml"))["project"]["version"],
        "vscode-extension/package.json": manifest["version"],
        "recipe/recipe.yaml": _found(_RECIPE, "recipe/recipe.yaml"),
        "ci/pre-commit-mirror/pyproject.toml": mirror["dependencies"][0].partition("==")[2],
    }


def _text(file: str) -> str:
    return (ROOT / file).read_text(encoding="utf-8")


def _found(pattern: re.Pattern[str], file: str) -> str:
    found = pattern.search(_text(file))
    return found[1] if found is not None else "none"


def main(args: list[str]) -> int:
    said = versions() | {f"tag {tag}": tag.removeprefix("v") for tag in args}
    if len(set(said.values())) == 1:
        return 0
    for place, version in said.items():
        print(f"{version:10} {place}", file=sys.stderr)
    print("version: these are not the same", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
