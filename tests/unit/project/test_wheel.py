"""The wheel as it would be published: the pages of the documentation are in it, and it shows them without a checkout."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from lsp_server.cli.docs import PACKAGE, pages
from magpy_core.findings import REGISTRY

ROOT = Path(__file__).resolve().parents[3]
WHEEL = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]["targets"]["wheel"]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what pip would unpack."""
    pytest.importorskip("hatchling", reason="the wheel is built with the packages of the extra dev")
    into = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(into)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    (wheel,) = into.glob("magpy_lsp-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(into / "unpacked")
    return into / "unpacked"


def docs(installed: Path, *args: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(installed), "COLUMNS": "100", "DISPLAY": "", "WAYLAND_DISPLAY": ""}
    command = [sys.executable, "-P", "-m", "lsp_server.cli", "docs", *args]
    return subprocess.run(command, cwd=installed.parent, env=env, capture_output=True, text=True, timeout=60)


def test_every_page_is_in_the_wheel() -> None:
    inside = {file: f"lsp_server/docs/{file.removeprefix('docs/')}" for file in WHEEL["force-include"]}
    assert inside == WHEEL["force-include"]
    assert set(WHEEL["force-include"]) == {page.source for page in pages(PACKAGE).values()}


def test_an_installed_package_shows_the_same_pages(installed: Path) -> None:
    here = pages(PACKAGE)
    found = pages(installed / "lsp_server")
    assert {name: page.text for name, page in found.items()} == {name: page.text for name, page in here.items()}
    assert all(installed in page.file.parents for page in found.values())
    listed = docs(installed)
    assert listed.returncode == 0 and len(re.findall(r"^  \S", listed.stdout, re.MULTILINE)) == len(here)
    shown = docs(installed, "regions")
    assert (
        shown.returncode == 0
        and "What becomes one graph" in shown.stdout
        and "MP406 (magpy-lsp explain MP406)" in " ".join(shown.stdout.split())
    )
    assert {file.stem for file in (installed / "magpy_core/findings/codes").glob("*.md")} == set(REGISTRY)


def test_the_skill_for_coding_assistants_is_in_it(installed: Path) -> None:
    skill = Path("lsp_server/agents/SKILL.md")
    assert (installed / skill).read_text(encoding="utf-8") == (ROOT / skill).read_text(encoding="utf-8")


def test_the_site_is_in_the_wheel_exactly_if_it_was_built(installed: Path) -> None:
    opened = docs(installed, "cli", "--open")
    if (PACKAGE / "site" / "docs" / "reference" / "cli.html").exists():
        assert opened.stdout == f"{installed / 'lsp_server/site/docs/reference/cli.html'}\n"
    else:
        assert opened.returncode == 2 and "comes without the site" in opened.stderr


def test_pages_about_the_source_are_not_in_it(installed: Path) -> None:
    readmes = {path.relative_to(installed).as_posix() for path in installed.rglob("README.md")}
    assert {path for path in readmes if not path.startswith("lsp_server/site/")} == {"lsp_server/docs/README.md"}
