"""Text of the program in the Markdown of a hover, where nothing of it may be active. Key functions: code, plain."""

from __future__ import annotations

import re

from lsp_server.formats.view import clean


def code(text: str) -> str:
    """``text`` as a code span, even if it contains backticks."""
    text = " ".join(clean(text).split()) or " "
    fence = "`" * (max((len(run) for run in re.findall(r"`+", text)), default=0) + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def plain(text: str) -> str:
    """A sentence on one line: text between backticks is a code span, and no other character is active."""
    parts = re.split(r"(`[^`]*`)", clean(text))
    return "".join(p if p.startswith("`") and len(p) > 1 else re.sub(r"([\\*_\[\]<>#|`])", r"\\\1", p) for p in parts)
