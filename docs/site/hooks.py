"""MkDocs hooks: the site consists of the repository's pages where they are, with the links that they have on GitHub.

A file's path in the site's collection is its path in the repository, so that MkDocs resolves and checks the links in a page
as they are written. Pages are those that ``nav`` names, by globs, and all guides; other files are those that pages link to.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from pymdownx.slugs import slugify

from lsp_server.cli.docs import CODES, address
from lsp_server.cli.explain import index

ROOT = Path(__file__).parents[2]
CODES_INDEX = f"{CODES}/index.md"
GUIDES = "docs/**/*.md"
# In code, what looks like a link is none.
_CODE = re.compile(r"(^ *```.*?^ *```$|`[^`\n]*`|^(?: {4}|\t)[^\n]*$)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?!\w+:)([^)#\s]+)(#[^)\s]*)?\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    config.nav = _expanded(config.nav)
    config.mdx_configs.setdefault("toc", {})["slugify"] = slugify(case="lower")  # GitHub's anchors
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    pages = {*_named(config.nav), *_matching(GUIDES)} - {CODES_INDEX}
    files.append(File.generated(config, CODES_INDEX, content=index()))
    files.get_file_from_path(CODES_INDEX).dest_uri = address(CODES_INDEX)
    icons = (config.theme["logo"], config.theme["favicon"])
    linked = {target for page in sorted(pages) for target in _linked_files(page)}
    for source in sorted({*pages, *icons, *linked}):
        files.append(_file(source, config))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """A link to a folder, which GitHub lists, leads to the page about it. MkDocs reports those without one."""

    def to_page(link: re.Match[str]) -> str:
        path, anchor = link[1], link[2] or ""
        target = _resolved(page.file.src_uri, path)
        if not (ROOT / target).is_dir():
            return link[0]
        index_of = next((name for name in ("index.md", "README.md") if f"{target}/{name}" in files.src_uris), None)
        return link[0] if index_of is None else f"]({posixpath.join(path, index_of)}{anchor})"

    return "".join(part if n % 2 else _LINK.sub(to_page, part) for n, part in enumerate(_CODE.split(markdown)))


def _expanded(nav: Any) -> Any:
    """``nav`` with the files that match in place of each glob."""
    if isinstance(nav, str):
        return _matching(nav) if "*" in nav else nav
    if isinstance(nav, dict):
        return {title: _expanded(item) for title, item in nav.items()}
    items = [_expanded(item) for item in nav]
    return [one for item in items for one in (item if isinstance(item, list) else [item])]


def _matching(glob: str) -> list[str]:
    return sorted(file.relative_to(ROOT).as_posix() for file in ROOT.glob(glob))


def _named(nav: Any) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    else:
        for item in nav.values() if isinstance(nav, dict) else nav:
            yield from _named(item)


def _linked_files(page: str) -> Iterator[str]:
    """Files that a page links to and that are no pages themselves: pictures, schemas, a license."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for part in _CODE.split(text)[::2]:
        for link in _LINK.finditer(part):
            target = _resolved(page, link[1])
            if (ROOT / target).is_file() and not target.endswith(".md"):
                yield target


def _resolved(page: str, path: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), path))


def _file(source: str, config: MkDocsConfig) -> File:
    return File(source, str(ROOT), config.site_dir, use_directory_urls=False, dest_uri=address(source))
