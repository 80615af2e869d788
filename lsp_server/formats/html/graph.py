"""The operator graph as SVG, laid out without a library. Key functions: picture, boxes_of.

A parameter that only one operation uses is named in its box and has no separate box. A dashed line is a graph break.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from html import escape

from lsp_server.formats.layered import HIGH, WIDE, Box, place
from lsp_server.formats.view import clean
from magpy_core.findings.details import CaptureDetail, NodeDetail

DRAWN = 1200
_PAPER = 1200  # a wider picture is too small to read on a page


@dataclass(kw_only=True)
class GraphBox(Box):
    """A node to draw; ``named`` are the parameters shown in its box, ``names`` those of all its nodes."""

    node: NodeDetail
    named: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)


def picture(capture: CaptureDetail, link: Callable[[NodeDetail], str | None]) -> str:
    """``link`` returns the anchor of a node's line in the page, or None."""
    boxes = boxes_of(capture.nodes[:DRAWN])
    if not boxes:
        return "<p class='soft'>The graph is empty: the region computes no tensor.</p>"
    width, height, cuts = place(boxes)
    parts = [
        f"<svg width='{width:.0f}' height='{height:.0f}' viewBox='0 0 {width:.0f} {height:.0f}' role='img' "
        "aria-label='operator graph' xmlns='http://www.w3.org/2000/svg'>"
    ]
    parts += [f"<line class='cut' x1='0' x2='{width:.0f}' y1='{y:.0f}' y2='{y:.0f}'/>" for y in cuts]
    parts += [_edge(boxes[name], box) for box in boxes.values() for name in box.inputs]
    parts += [_drawn(box, link(box.node)) for box in boxes.values()]
    large = " large" if width > _PAPER or height > 1.3 * _PAPER else ""
    left = len(capture.nodes) - len(capture.nodes[:DRAWN]) + capture.cut
    more = f"<p class='soft'>{left:,} more operations are listed below, not drawn.</p>" if left else ""
    return f"<div class='scroll picture{large}'>{''.join(parts)}</svg></div>{more}"


def boxes_of(nodes: list[NodeDetail]) -> dict[str, GraphBox]:
    by_name = {node.name: node for node in nodes}
    users = Counter(name for node in nodes for name in node.inputs)
    inner = {n.name for n in nodes if n.kind == "placeholder" and users[n.name] <= 1 and "." in n.label}
    boxes: dict[str, GraphBox] = {}
    for node in nodes:
        if node.name in inner:
            continue
        inputs = [name for name in dict.fromkeys(node.inputs) if name in boxes]
        within = [name for name in node.inputs if name in inner]
        named = [by_name[name].label for name in within]
        free, names = node.kind == "placeholder", [node.name, *within]
        boxes[node.name] = GraphBox(node=node, inputs=inputs, named=named, names=names, segment=node.segment, free=free)
    return boxes


def _edge(start: GraphBox, end: GraphBox) -> str:
    x1, y1, x2, y2 = start.x + WIDE / 2, start.y + HIGH, end.x + WIDE / 2, end.y
    bend = max((y2 - y1) / 2, 12)
    return f"<path class='edge' d='M{x1:.0f} {y1:.0f}C{x1:.0f} {y1 + bend:.0f} {x2:.0f} {y2 - bend:.0f} {x2:.0f} {y2:.0f}'/>"


def _drawn(box: GraphBox, href: str | None) -> str:
    node = box.node
    line = f"{_base(node.file)}:{node.line}" if node.line else ""
    below = ", ".join(box.named) or ("input" if node.kind == "placeholder" else line)
    tooltip = [f"{node.name} = {node.label}", *box.named, *([f"{node.file}:{node.line}"] if node.line else [])]
    kind = {"placeholder": "placeholder", "read": "read"}.get(node.kind, "node")
    middle = box.x + WIDE / 2
    shape = (
        f"<g class='{kind}' data-n='{_text(' '.join(box.names))}'><title>{_text(chr(10).join(tooltip))}</title>"
        f"<rect x='{box.x:.0f}' y='{box.y:.0f}' width='{WIDE}' height='{HIGH}' rx='6'/>"
        f"<text x='{middle:.0f}' y='{box.y + 16:.0f}' text-anchor='middle'>{_text(_end_of(node.label, 22))}</text>"
        f"<text class='small' x='{middle:.0f}' y='{box.y + 30:.0f}' text-anchor='middle'>{_text(_end_of(below, 26))}</text>"
        "</g>"
    )
    return f"<a href='#{href}'>{shape}</a>" if href else shape


def _end_of(text: str, width: int) -> str:
    """The last ``width`` characters: the end of a long path is more informative than its beginning."""
    return text if len(text) <= width else "…" + text[-width + 1 :]


def _base(file: str) -> str:
    return file.replace("\\", "/").rsplit("/", 1)[-1]


def _text(text: str) -> str:
    return escape(clean(text), quote=True)
