"""A graph's operations as lines of text, which the page's script searches. Key functions: searchable, listing.

The script ignores what is in ``<i>``: the inputs of an operation, which would match the name of each.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from html import escape

from lsp_server.formats.html import graph
from lsp_server.formats.view import clean
from magpy_core.findings.details import CaptureDetail, NodeDetail

Link = Callable[[str, int], str | None]
"""The anchor of a line of a file in the page, or None."""


def searchable(capture: CaptureDetail, link: Link) -> str:
    """The picture and the listing, below a field that searches both."""
    drawn = graph.picture(capture, lambda node: link(*node.users))
    if not capture.nodes:
        return drawn
    field = (
        "<p class='search'><input class='find' placeholder='Operator, name, shape or file:line' "
        "aria-label='Search the operations: Enter for the next match, Shift+Enter for the one before'> "
        "<button class='before' type='button' aria-label='Match before'>↑</button> "
        "<button class='next' type='button' aria-label='Next match'>↓</button> "
        "<span class='found soft' role='status'></span></p>"
    )
    return f"<div class='graph'>{field}{drawn}{listing(capture, link)}</div>"


def listing(capture: CaptureDetail, link: Link) -> str:
    lines = [_line(node, link) for node in capture.nodes]
    lines += [f"<div>{escape(clean(line))}</div>" for line in capture.rest.splitlines()]
    return f"<div class='listing mono' tabindex='0' role='group' aria-label='All operations'>{''.join(lines)}</div>"


def _line(node: NodeDetail, link: Link) -> str:
    """``linear = linear(x, w): float32[2, 4]  train.py:12 linear.py:125``."""
    made = f"input {_text(node.label)}" if node.kind == "placeholder" else f"{_text(node.label)}(<i>{_inputs(node)}</i>)"
    tensor = f": {_text(node.tensor)}" if node.tensor else ""
    return (
        f"<div data-n='{_text(node.name)}'><b>{_text(node.name)}</b> = {made}{tensor} {' '.join(_places(node, link))}</div>"
    )


def _inputs(node: NodeDetail) -> str:
    return _text(", ".join(node.inputs))


def _places(node: NodeDetail, link: Link) -> Iterator[str]:
    """The user's line, and the library's that it calls."""
    for file, line in dict.fromkeys((node.users, (node.file, node.line))):
        if not line:
            continue
        text = f"{_text(os.path.basename(file))}:{line}"
        anchor = link(file, line)
        yield f"<a href='#{anchor}'>{text}</a>" if anchor else f"<span class='soft'>{text}</span>"


def _text(text: str) -> str:
    return escape(clean(text), quote=True)
