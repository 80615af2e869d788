"""Where codes' pages are: on the web where a project says so, else a file or a command's output."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest

from lsp_server import links
from lsp_server.config import ConfigError, load
from lsp_server.features.settings import parse_settings
from magpy_core.findings import REGISTRY

CODE = REGISTRY["MP102"]


def test_published_nowhere() -> None:
    assert links.web(CODE, None) is None
    assert links.in_text(CODE, None) == "magpy-lsp explain MP102"


def test_a_project_publishes_its_pages() -> None:
    for address in ("https://docs.example.org/codes", "https://docs.example.org/codes/"):
        for find in (links.web, links.in_text, links.in_editor):
            assert find(CODE, address) == "https://docs.example.org/codes/MP102"


def test_the_editor_opens_the_installed_page() -> None:
    file = Path(url2pathname(urlsplit(links.in_editor(CODE, None)).path))
    assert file.name == "MP102.md" and file.read_text(encoding="utf-8") == CODE.page


def test_the_projects_table(tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text('[tool.magpy]\ndocs-url = "https://docs.example.org"\n', encoding="utf-8")
    assert load(file).settings.docs_url == "https://docs.example.org"
    for wrong in ('"docs"', '""', "3", '"ftp://x"'):
        file.write_text(f"[tool.magpy]\ndocs-url = {wrong}\n", encoding="utf-8")
        with pytest.raises(ConfigError, match=r"docs-url.*https://"):
            load(file)


def test_the_editors_setting() -> None:
    settings, problems = parse_settings({"docsUrl": "https://docs.example.org"})
    assert settings.docs_url == "https://docs.example.org" and not problems
    settings, problems = parse_settings({"docsUrl": "docs"})
    assert settings.docs_url == "" and "docsUrl" in problems[0]
