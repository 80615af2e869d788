"""Where a finding's code is explained: an address on the web if the pages are published, else what is installed.

Pages are published where ``DOCS_URL`` says, or ``docs-url`` under ``[tool.magpy]``. Without either, an editor opens a page
in the user's cache folder, and text names the command that shows it. Key functions: web, in_editor, in_text.
"""

from __future__ import annotations

import functools
import logging
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from magpy_core import __version__
from magpy_core.findings import Code
from magpy_core.findings.docs import markdown

#: The address below which every code has a page; None while the pages are published nowhere.
DOCS_URL: str | None = None

_log = logging.getLogger(__name__)


def web(code: Code, docs_url: str | None) -> str | None:
    """The page on the web, below ``docs_url`` (a project's own) or ``DOCS_URL``; None if there is none."""
    base = docs_url or DOCS_URL
    return None if base is None else f"{base.rstrip('/')}/{code.code}"


def in_text(code: Code, docs_url: str | None) -> str:
    """What text names: the page on the web, else the command that shows it."""
    return web(code, docs_url) or f"magpy-lsp explain {code.code}"


def in_editor(code: Code, docs_url: str | None) -> str | None:
    """The URI of a page that an editor can open: on the web, else a file; None if no file can be written."""
    return web(code, docs_url) or _file(code)


def cache_folder(environ: Mapping[str, str] = os.environ, platform: str = sys.platform) -> Path:
    """Where this user's programs keep what they can make again."""
    home = Path.home()
    if platform == "win32":
        return Path(environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / "magpy" / "Cache"
    if platform == "darwin":
        return home / "Library" / "Caches" / "magpy"
    configured = environ.get("XDG_CACHE_HOME", "")
    return (Path(configured) if os.path.isabs(configured) else home / ".cache") / "magpy"


@functools.cache
def _file(code: Code) -> str | None:
    try:
        return page(code, cache_folder()).as_uri()
    except (OSError, RuntimeError) as error:  # a home that can't be written, or no home
        _log.warning("no documentation page for %s: %s", code.code, error)
        return None


def page(code: Code, folder: Path) -> Path:
    """The file below ``folder`` with the page of ``code``, written if it isn't there as it should be."""
    file = folder / "codes" / __version__ / f"{code.code}.md"
    wanted = markdown(code).encode()
    if not file.is_file() or file.read_bytes() != wanted:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=file.parent, suffix=".md", delete=False) as unfinished:
            unfinished.write(wanted)
        os.replace(unfinished.name, file)  # another process may write it too
    return file
