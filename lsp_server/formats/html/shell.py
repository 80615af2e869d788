"""What every page has: head, policy, style, script, heading. Key functions: document, navigation.

The content security policy lets the page load nothing and run only its own script.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from html import escape

from lsp_server.formats.html.assets import SCRIPT, STYLE
from lsp_server.formats.view import clean
from magpy_core import __version__


def document(title: str, head: str, body: Iterable[str]) -> str:
    """``title`` is text; ``head`` is below it."""
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{_digest(SCRIPT)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    name = f"MagPy: {escape(clean(title))}"
    return "".join(
        [
            "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'>",
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            "<meta name='viewport' content='width=device-width, initial-scale=1'>",
            f"<title>{name}</title><style>{STYLE}</style></head><body>",
            f"<header><h1>{name}</h1>{head}</header><main>",
            *body,
            f"<p class='soft'>MagPy {__version__}. This page contains source code and values of the program.</p>",
            f"</main><script>{SCRIPT}</script></body></html>\n",
        ]
    )


def navigation(chapters: Iterable[str]) -> str:
    """Links to chapters by their ids."""
    shown = "".join(f"<a href='#{name}'>{name.capitalize()}</a>" for name in chapters)
    return f"<nav>{shown}<button id='theme' type='button'>Light / dark</button></nav>"


def verdict(good: bool, summary: str, details: str) -> str:
    """``summary`` and ``details`` are text."""
    mark, style = ("✓", "good") if good else ("✗", "error")
    return f"<p><b class='{style}'>{mark} {escape(summary)}</b> <span class='soft'>{escape(details)}</span></p>"


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
