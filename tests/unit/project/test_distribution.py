"""What pip installs has one name, everywhere: `magpy` on the package index is another project's."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from magpy_core.distribution import DISTRIBUTION

ROOT = Path(__file__).resolve().parents[3]
# a command that installs it, a pinned version or an extra of it
OTHERS = re.compile(r"(?:install|uvx|pipx run)[ \t]+(?:-[^ ]+[ \t]+)*magpy(?![\w-])|(?<![\w-])magpy(?:==|\[[a-z]+\])")


def test_the_package_and_the_extension_have_the_name() -> None:
    assert tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["name"] == DISTRIBUTION
    installation = (ROOT / "vscode-extension/src/installation.ts").read_text(encoding="utf-8")
    assert f'DISTRIBUTION = "{DISTRIBUTION}"' in installation


def _tracked() -> dict[str, str]:
    """The text of every file of the checkout."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("not a checkout")
    texts = {}
    for name in filter(None, listed.stdout.decode().split("\0")):
        try:
            texts[name] = (ROOT / name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):  # removed but not committed; a picture
            continue
    return texts


def test_no_file_names_the_other_package() -> None:
    found = [
        f"{name}:{i}: {line.strip()}"
        for name, text in _tracked().items()
        for i, line in enumerate(text.splitlines(), 1)
        if OTHERS.search(line)
    ]
    assert not found


def test_no_text_has_an_address_before_there_is_one() -> None:
    """`[project.urls]` alone decides: until it is set, no file has the project's address or a placeholder for one."""
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"].get("urls", {})
    texts = _tracked()
    assert len(texts) > 400
    home = next(iter(urls.values()), "")
    own = str(Path(__file__).relative_to(ROOT))
    for file, text in texts.items():
        assert file == own or not re.search(r"\bOWNER\b", text), file
        ours = re.findall(r"https://(?:github|gitlab)\.com/[\w-]+/magpy(?:-lsp)?\b[\w/.-]*", text)
        assert [address for address in ours if not home or not address.startswith(home)] == [], file


def test_the_recipe_has_the_address_that_the_project_has() -> None:
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"].get("urls", {})
    recipe = yaml.safe_load((ROOT / "recipe" / "recipe.yaml").read_text(encoding="utf-8"))
    assert recipe["about"].get("homepage", "") == next(iter(urls.values()), "")
    assert recipe["source"]["url"].startswith(f"https://pypi.org/packages/source/{DISTRIBUTION[0]}/{DISTRIBUTION}/")
