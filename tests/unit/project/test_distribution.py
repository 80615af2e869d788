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
    installation = (ROOT / "vscode-extension/src/installation.ts").read_text(encoding="utf-8")
    assert f'DISTRIBUTION = "{DISTRIBUTION}"' in installation


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


def test_no_text_has_an_address_before_there_is_one() -> None:
    """`[project.urls]` decides; until it is set, the recipe alone has a placeholder, which its build would stop at."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    urls = project.get("urls", {})
    recipe = (ROOT / "recipe" / "recipe.yaml").read_text(encoding="utf-8")
    assert ("OWNER" in recipe) is (urls == {})
    places = ["README.md", "CHANGELOG.md", "action.yml", "docs", "magpy_core", "lsp_server", "ci", "vscode-extension/src"]
    files = [file for place in places for file in ((ROOT / place).rglob("*") if (ROOT / place).is_dir() else [ROOT / place])]
    files = [file for file in files if file.suffix in (".md", ".py", ".yml", ".ts", ".json")]
    texts = {file: file.read_text(encoding="utf-8") for file in files}
    assert len(texts) > 400
    home = next(iter(urls.values()), "")
    for file, text in texts.items():
        assert not re.search(r"\bOWNER\b", text), file
        own = re.findall(r"https://\w[\w.]+/[\w-]+/magpy[\w/.-]*", text)
        assert [address for address in own if not home or not address.startswith(home)] == [], file
