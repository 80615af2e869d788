"""Where a finding's code is explained: at a web address if the pages are published, else in the installed page.

``DOCS_URL``, or ``docs-url`` under ``[tool.magpy]``, is the address of the published pages. Without either, an editor opens
the installed page, and text names the command that shows it. Key functions: web, in_editor, in_text.
"""

from __future__ import annotations

from magpy_core.findings.registry import PAGES, Code

#: The address below which every code has a page; None while the pages are not published.
DOCS_URL: str | None = None


def web(code: Code, docs_url: str | None) -> str | None:
    """The page on the web, below ``docs_url`` (a project's own) or ``DOCS_URL``; None if there is none."""
    base = docs_url or DOCS_URL
    return None if base is None else f"{base.rstrip('/')}/{code.code}"


def in_text(code: Code, docs_url: str | None) -> str:
    """The reference for texts: the page on the web, else the command that shows it."""
    return web(code, docs_url) or f"magpy-lsp explain {code.code}"


def in_editor(code: Code, docs_url: str | None) -> str:
    """The URI of a page that an editor can open: on the web, else the installed file."""
    return web(code, docs_url) or (PAGES / f"{code.code}.md").as_uri()
