"""docs: the pages of a checkout and of an installed package, links as commands, the site in a browser."""

from __future__ import annotations

import re
import webbrowser
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from lsp_server.cli import docs as module
from lsp_server.cli.docs import address, pages
from lsp_server.cli.main import cli
from magpy_core.findings import REGISTRY

ROOT = Path(__file__).parents[3]
GUIDES = [file.stem for file in (ROOT / "docs").rglob("*.md")]


def docs(*args: str) -> Result:
    return CliRunner().invoke(cli, ["docs", *args], prog_name="magpy-lsp", env={"COLUMNS": "100"})


def words(result: Result) -> str:
    return " ".join(result.output.split())


def test_without_a_name_every_page_is_listed() -> None:
    result = docs()
    assert result.exit_code == 0 and len(GUIDES) >= 25
    listed = dict(re.findall(r"^  (\S+) +(\S.*)$", result.output, re.MULTILINE))
    assert sorted(listed) == sorted([*GUIDES, "readme", "changelog"]), "each page has a name of its own"
    assert listed["cli"] == "The command line" and "magpy-lsp explain --all" in result.output


@pytest.mark.parametrize("name", ["limits", "LIMITS", "limits.md", "docs/reference/limits.md"])
def test_a_page_by_its_name(name: str) -> None:
    assert "Known limits" in docs(name).output.splitlines()[0]


@pytest.mark.parametrize("name", ["MP102", "mp102", "host-read"])
def test_a_finding_code_is_a_page_too(name: str) -> None:
    assert "MP102: A tensor's value is read by Python" in docs(name).output


@pytest.mark.parametrize(("name", "hint"), [("limit", "did you mean limits?"), ("zzz", "`magpy-lsp docs` lists the pages.")])
def test_an_unknown_page(name: str, hint: str) -> None:
    result = docs(name)
    assert result.exit_code == 2 and f"{name!r} is not a page of the documentation; {hint}" in words(result)


def test_pages_are_listed_by_their_kind() -> None:
    # The last lines say what else the command does: one more of them once the site is built.
    sections = re.split(r"^(?=\w)", docs().output, flags=re.MULTILINE)[1:]
    assert [section.split(":")[0].split("\n")[0] for section in sections] == [
        "Tutorials", "How-to", "Explanation", "Reference", "More"
    ]  # fmt: skip
    assert "first-check" in sections[0] and "stop-recompiles" in sections[1] and "concepts" in sections[2]
    assert "settings" in sections[3]
    assert re.findall(r"^  (\S+)", sections[4], re.MULTILINE) == ["readme", "benchmarks", "changelog"]


def test_every_page_can_be_shown() -> None:
    for page in pages(module.PACKAGE).values():
        shown = docs(page.name).output
        heading = page.title.split()[0]
        assert heading in shown and len(shown) > len(page.text) / 2, page.name


def test_markdown_is_the_page_as_it_is_written() -> None:
    assert docs("ci", "--format", "markdown").output == (ROOT / "docs/how-to/ci.md").read_text(encoding="utf-8")


def test_links_are_commands_or_addresses() -> None:
    readme = words(docs("readme"))
    assert "docs/how-to/ci.md (magpy-lsp docs ci)" in readme
    assert "magpy_core/findings/codes/ (magpy-lsp explain --all)" in readme
    assert "[picture: A graph break of the early-exit network in VS Code]" in readme
    assert "ARCHITECTURE.md describes the stages" in readme, "it is not installed, so there is no command for it"
    assert "MP406 (magpy-lsp explain MP406)" in words(docs("regions"))
    assert "Changelog (https://keepachangelog.com/en/1.1.0/)" in words(docs("changelog"))


def test_no_link_to_a_file_is_left() -> None:
    for page in pages(module.PACKAGE).values():
        shown = docs(page.name).output
        assert not re.search(r"\w \((\.\./)*(docs|magpy_core|tests)/[^)\s]*\.(md|json|png)(#[^)\s]*)?\)", shown), page.name


def test_color_only_if_it_is_wanted() -> None:
    assert "\x1b[" in docs("ci", "--color", "always").output
    assert "\x1b[" not in docs("ci").output


def test_an_installed_package_has_its_own_pages(tmp_path: Path) -> None:
    folder = tmp_path / "lsp_server" / "docs"
    folder.mkdir(parents=True)
    (folder / "reference").mkdir()
    for name in ("README", "reference/cli", "CHANGELOG"):
        (folder / f"{name}.md").write_text(f"# The {Path(name).name}\n")
    found = pages(tmp_path / "lsp_server")
    assert list(found) == ["readme", "cli", "changelog"]
    assert found["cli"].source == "docs/reference/cli.md" and found["cli"].title == "The cli"


# ---------------------------------------------------------------- the site


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("README.md", "index.html"),
        ("docs/reference/cli.md", "docs/reference/cli.html"),
        ("examples/char_gpt/README.md", "examples/char_gpt/index.html"),
        ("magpy_core/findings/codes/MP102.md", "codes/MP102/index.html"),
        ("magpy_core/findings/codes/index.md", "codes/index.html"),
        ("docs/images/vscode.png", "docs/images/vscode.png"),
        ("LICENSE", "LICENSE"),
    ],
)
def test_where_pages_are_in_the_site(source: str, expected: str) -> None:
    assert address(source) == expected


def test_no_two_pages_are_at_one_place() -> None:
    sources = [page.source for page in pages(module.PACKAGE).values()] + [f"{module.CODES}/{code}.md" for code in REGISTRY]
    assert len({address(source) for source in sources}) == len(sources)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for file in ("index.html", "docs/reference/cli.html", "codes/MP102/index.html"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("<html></html>")
    monkeypatch.setattr(module, "SITE", tmp_path)
    return tmp_path


@pytest.mark.parametrize("display", [True, False])
@pytest.mark.parametrize(
    ("args", "file"), [([], "index.html"), (["cli"], "docs/reference/cli.html"), (["MP102"], "codes/MP102/index.html")]
)
def test_a_page_is_opened_where_a_browser_can_be(
    site: Path, monkeypatch: pytest.MonkeyPatch, args: list[str], file: str, display: bool
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setenv("DISPLAY", ":0" if display else "")
    result = docs(*args, "--open")
    assert (result.exit_code, result.output) == (0, f"{site / file}\n")
    assert opened == ([(site / file).as_uri()] if display else [])


def test_without_a_site_the_pages_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "SITE", tmp_path / "site")
    result = docs("cli", "--open")
    assert result.exit_code == 2 and "`magpy-lsp docs NAME` shows one here" in result.output
    assert "--open" not in docs().output, "it is offered only if there is a site"


def test_the_list_offers_the_site(site: Path) -> None:
    assert "`magpy-lsp docs --open` opens all of them in a browser." in docs().output
