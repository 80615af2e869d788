"""``magpy-lsp docs``: the pages of the documentation, in the terminal or in a browser. Key functions: docs, pages, address.

A wheel has the pages in ``lsp_server/docs``; in a checkout they are where they are written. The site, which ``make site``
builds from them, is in ``lsp_server/site`` of both; a wheel has it if it was built before the wheel.
"""

from __future__ import annotations

import difflib
import os
import posixpath
import sys
import webbrowser
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lsp_server.cli.publish import ToolError
from magpy_core.findings.registry import PAGES, REGISTRY

if TYPE_CHECKING:
    from rich.markdown import Markdown

PACKAGE = Path(__file__).parents[1]
SITE = PACKAGE / "site"
CODES = "magpy_core/findings/codes"
_FIRST, _LAST = "README.md", "CHANGELOG.md"
#: The folders of the pages in the order of the list, with their headings.
SECTIONS = {
    "tutorials": "Tutorials: learn by doing",
    "how-to": "How-to: solve one problem",
    "explanation": "Explanation: how it works, and why",
    "reference": "Reference",
    "": "More",
}


@dataclass(frozen=True)
class Page:
    """``source`` is the page's path in the repository, to which links in it are relative."""

    name: str
    source: str
    file: Path

    @property
    def text(self) -> str:
        return self.file.read_text(encoding="utf-8")

    @property
    def title(self) -> str:
        return self.text.partition("\n")[0].removeprefix("# ")

    @property
    def section(self) -> str:
        """A key of ``SECTIONS``."""
        folder = posixpath.dirname(self.source).removeprefix("docs").strip("/")
        return folder if folder in SECTIONS else ""


def docs(name: str | None, output_format: str, color: str, *, in_browser: bool) -> int:
    """Shows a page, or the list of them if there is no name; returns the exit status."""
    found = pages(PACKAGE)
    page = None if name is None else _find(name, found)
    if in_browser:
        return _open(address(page.source if page else _FIRST))
    if page is None:
        _list(found)
    elif output_format == "markdown":
        click.echo(page.text, nl=False)
    else:
        _show(page, found, color)
    return 0


def pages(package: Path) -> dict[str, Page]:
    """The pages that ``package``, the folder of ``lsp_server``, comes with, by their names."""
    installed = package / "docs"
    guides, root = (installed, installed) if installed.is_dir() else (package.parent / "docs", package.parent)
    middle = {file.relative_to(guides).as_posix(): file for file in sorted(guides.rglob("*.md"))}
    named = {f"docs/{path}": file for path, file in middle.items() if path not in (_FIRST, _LAST)}
    sources = {_FIRST: root / _FIRST, **named, _LAST: root / _LAST}
    found = [Page(Path(source).stem.lower(), source, file) for source, file in sources.items()]
    return {page.name: page for page in found}


def address(source: str) -> str:
    """The address in the site, relative to its start, of a page or file by its path in the repository.

    A code's page is a folder's index, so that ``docs-url`` needs no suffix for it on any web server.
    """
    folder, name = posixpath.split(source)
    stem, suffix = posixpath.splitext(name)
    if suffix != ".md":
        return source
    folder = "codes" if folder == CODES else folder
    if stem in REGISTRY:
        return f"{folder}/{stem}/index.html"
    return posixpath.join(folder, "index.html" if stem in ("README", "index") else f"{stem}.html")


def _find(name: str, found: dict[str, Page]) -> Page:
    wanted = name.lower().removesuffix(".md").rpartition("/")[2]
    codes = {code.name: code.code for code in REGISTRY.values()}
    if (page := found.get(wanted)) is not None:
        return page
    code = codes.get(wanted, wanted.upper())
    if code in REGISTRY:
        return Page(code, f"{CODES}/{code}.md", PAGES / f"{code}.md")
    close = difflib.get_close_matches(wanted, [*found, *codes], 1, 0.6)
    hint = f"did you mean {close[0]}?" if close else "`magpy-lsp docs` lists the pages."
    raise click.UsageError(f"{name!r} is not a page of the documentation; {hint}")


def _list(found: dict[str, Page]) -> None:
    width = max(map(len, found))
    for section, heading in SECTIONS.items():
        click.echo(heading)
        for page in found.values():
            if page.section == section:
                click.echo(f"  {page.name:<{width}}  {page.title}")
        click.echo()
    click.echo("`magpy-lsp docs NAME` shows a page, `magpy-lsp explain --all` the finding codes.")
    if (SITE / "index.html").exists():
        click.echo("`magpy-lsp docs --open` opens all of them in a browser.")


def _show(page: Page, found: dict[str, Page], color: str) -> None:
    """In a pager if the output is a terminal."""
    from rich.markdown import Markdown

    from lsp_server.cli.console import console, show_table

    out = console(sys.stdout, color)
    markdown = Markdown(page.text, code_theme="ansi_dark", hyperlinks=False)
    _point_links_at_commands(markdown, page, found)
    with out.capture() as shown:
        show_table(out, markdown)
    click.echo_via_pager(shown.get(), color=True if color == "always" else None)


def _point_links_at_commands(markdown: Markdown, page: Page, found: dict[str, Page]) -> None:
    """Replaces the target of each link by the command that shows it; other links within the repository are plain text."""
    for token in markdown.parsed:
        kept, closing = [], True
        for child in token.children or ():
            if child.type == "link_open":
                target = _command(str(child.attrs["href"]), page, found)
                closing = target is not None
                child.attrs["href"] = target or ""
            if child.type == "image":
                child.type, child.tag, child.children = "text", "", None
                child.content = f"[picture: {child.content}]"
            if closing or not child.type.startswith("link_"):
                kept.append(child)
            closing = closing or child.type == "link_close"
        if token.children:
            token.children = kept


def _command(href: str, page: Page, found: dict[str, Page]) -> str | None:
    """What shows the target of a link: its address on the web, or a command."""
    if href.startswith(("https://", "http://")):
        return href
    path, _, _ = href.partition("#")
    target = posixpath.normpath(posixpath.join(posixpath.dirname(page.source), path))
    if not path or target == page.source:
        return None
    folder, name = posixpath.split(target)
    if folder == CODES:
        return f"magpy-lsp explain {posixpath.splitext(name)[0]}"
    if target == CODES:
        return "magpy-lsp explain --all"
    return next((f"magpy-lsp docs {other.name}" for other in found.values() if other.source == target), None)


def _open(relative: str) -> int:
    file = SITE / relative
    if not file.exists():
        raise ToolError(
            "This installation comes without the site, which `make site` builds in a checkout: "
            "`magpy-lsp docs` lists the pages, and `magpy-lsp docs NAME` shows one here."
        )
    if has_display():
        webbrowser.open(file.as_uri())
    click.echo(file)
    return 0


def has_display() -> bool:
    """Whether a browser can open a window. Without one, a text browser would take over the terminal."""
    return sys.platform != "linux" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
