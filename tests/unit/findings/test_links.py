"""Where codes' pages are: on the web where a project says so, else in the user's cache or a command's output."""

from __future__ import annotations

import sys
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest

from lsp_server import links
from lsp_server.config import ConfigError, load
from lsp_server.features.settings import parse_settings
from magpy_core.findings import REGISTRY
from magpy_core.findings.docs import markdown

CODE = REGISTRY["MP102"]


def test_published_nowhere() -> None:
    assert links.web(CODE, None) is None
    assert links.in_text(CODE, None) == "magpy-lsp explain MP102"


def test_a_project_publishes_its_pages() -> None:
    for address in ("https://docs.example.org/codes", "https://docs.example.org/codes/"):
        for find in (links.web, links.in_text, links.in_editor):
            assert find(CODE, address) == "https://docs.example.org/codes/MP102"


@pytest.mark.skipif(sys.platform != "linux", reason="the folder is another elsewhere")
def test_the_editor_opens_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    links._file.cache_clear()
    try:
        uri = links.in_editor(CODE, None)
        assert uri is not None and uri.startswith("file:///")
        file = Path(url2pathname(urlsplit(uri).path))
        assert file.is_relative_to(tmp_path) and file.name == "MP102.md"
        assert file.read_text(encoding="utf-8") == markdown(CODE)
    finally:
        links._file.cache_clear()


def test_a_page_is_written_again_where_it_differs(tmp_path: Path) -> None:
    file = links.page(CODE, tmp_path)
    file.write_text("old", encoding="utf-8")
    assert links.page(CODE, tmp_path) == file and file.read_text(encoding="utf-8") == markdown(CODE)
    assert [p.name for p in file.parent.iterdir()] == ["MP102.md"]


def test_no_folder_to_write_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setattr(links, "cache_folder", lambda: tmp_path / "file")
    links._file.cache_clear()
    try:
        assert links.in_editor(CODE, None) is None
    finally:
        links._file.cache_clear()


@pytest.mark.parametrize(
    ("platform", "environ", "end"),
    [
        ("linux", {"XDG_CACHE_HOME": "/c"}, "/c/magpy"),
        ("linux", {"XDG_CACHE_HOME": "relative"}, ".cache/magpy"),
        ("darwin", {}, "Library/Caches/magpy"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/magpy/Cache"),
    ],
)
def test_cache_folders(platform: str, environ: dict[str, str], end: str) -> None:
    assert links.cache_folder(environ, platform).as_posix().endswith(end)


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
