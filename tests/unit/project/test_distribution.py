"""What pip installs has one name, everywhere: `magpy` on the package index is another project's."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from magpy_core.distribution import DISTRIBUTION

ROOT = Path(__file__).resolve().parents[3]
# a command that installs it, a pinned version or an extra of it
OTHERS = re.compile(r"(?:install|uvx|pipx run)[ \t]+(?:-[^ ]+[ \t]+)*magpy(?![\w-])|(?<![\w-])magpy(?:==|\[[a-z]+\])")


def test_the_package_and_the_extension_have_the_name() -> None:
    assert tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["name"] == DISTRIBUTION
    interpreter = (ROOT / "vscode-extension/src/interpreter.ts").read_text(encoding="utf-8")
    assert f'DISTRIBUTION = "{DISTRIBUTION}"' in interpreter


def test_no_file_names_the_other_package() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("not a checkout")
    found = []
    for name in filter(None, listed.stdout.decode().split("\0")):
        try:
            lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError):  # removed but not committed; a picture
            continue
        found += [f"{name}:{i}: {line.strip()}" for i, line in enumerate(lines, 1) if OTHERS.search(line)]
    assert not found
