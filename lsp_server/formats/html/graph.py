"""The operator graph as an SVG picture, laid out here: the page needs no library. Key function: picture.

Layers from top to bottom by the longest way from the inputs; in a layer, nodes stand near what they use. Parameters that
one operation uses are named in its box and not drawn by themselves. A dashed line is a graph break: Python decides there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from html import escape

from lsp_server.formats.view import clean
from magpy_core.findings.details import CaptureDetail, NodeDetail

DRAWN = 1200
_WIDE, _HIGH = 150, 38
_GAP_X, _GAP_Y = 18, 34
_PER_ROW = 40  # a layer wider than this is folded: hundreds of updates of parameters stand beside each other


@dataclass
class _Box:
    node: NodeDetail
    inputs: list[str]
    named: list[str] = field(default_factory=list)  # parameters shown in the box
    layer: int = 0
    x: float = 0.0
    y: float = 0.0


def picture(capture: CaptureDetail, link: Callable[[NodeDetail], str | None]) -> str:
    """``link`` gives the place of a node's line in the page, or None."""
    boxes = _boxes(capture.nodes[:DRAWN])
    if not boxes:
        return "<p class='soft'>No operation: the region computes no tensor.</p>"
    width, height, cuts = _place(boxes)
    parts = [
        f"<svg width='{width:.0f}' height='{height:.0f}' viewBox='0 0 {width:.0f} {height:.0f}' role='img' "
        "aria-label='operator graph' xmlns='http://www.w3.org/2000/svg'>"
    ]
    parts += [f"<line class='cut' x1='0' x2='{width:.0f}' y1='{y:.0f}' y2='{y:.0f}'/>" for y in cuts]
    parts += [_edge(boxes[name], box) for box in boxes.values() for name in box.inputs]
    parts += [_drawn(box, link(box.node)) for box in boxes.values()]
    left = len(capture.nodes) - len(capture.nodes[:DRAWN]) + capture.cut
    more = f"<p class='soft'>{left:,} more operations are not drawn.</p>" if left else ""
    return f"<div class='scroll picture'>{''.join(parts)}</svg></div>{more}"


def _boxes(nodes: list[NodeDetail]) -> dict[str, _Box]:
    by_name = {node.name: node for node in nodes}
    users = Counter(name for node in nodes for name in node.inputs)
    inner = {n.name for n in nodes if n.kind == "placeholder" and users[n.name] <= 1 and "." in n.label}
    boxes: dict[str, _Box] = {}
    for node in nodes:
        if node.name in inner:
            continue
        inputs = [name for name in dict.fromkeys(node.inputs) if name in boxes]
        named = [by_name[name].label for name in node.inputs if name in inner]
        boxes[node.name] = _Box(node, inputs, named)
    return boxes


def _place(boxes: dict[str, _Box]) -> tuple[float, float, list[float]]:
    """Gives each box its place; returns width, height and the heights of the cuts between segments."""
    floor = 0
    segment = 0
    for box in boxes.values():  # in the order of the program, so inputs come first
        if box.node.segment > segment:
            segment = box.node.segment
            floor = max((b.layer for b in boxes.values() if b.node.segment < segment), default=-1) + 1
        above = max((boxes[name].layer for name in box.inputs), default=-1) + 1
        box.layer = max(above, floor) if box.node.kind != "placeholder" else above
    layers: dict[int, list[_Box]] = {}
    for box in boxes.values():
        layers.setdefault(box.layer, []).append(box)
    row = 0
    tops: dict[int, float] = {}
    widest = max(min(len(layer), _PER_ROW) for layer in layers.values())
    for number in sorted(layers):
        layer = sorted(layers[number], key=lambda box: _middle(box, boxes))
        tops[number] = row * (_HIGH + _GAP_Y)
        for start in range(0, len(layer), _PER_ROW):
            line = layer[start : start + _PER_ROW]
            left = (widest - len(line)) / 2
            for i, box in enumerate(line):
                box.x = 12 + (left + i) * (_WIDE + _GAP_X)
                box.y = 12 + row * (_HIGH + _GAP_Y)
            row += 1
    firsts = [min(b.layer for b in boxes.values() if b.node.segment == s and b.node.kind != "placeholder")
              for s in sorted({b.node.segment for b in boxes.values() if b.node.kind != "placeholder"})]  # fmt: skip
    cuts = [12 + tops[layer] - _GAP_Y / 2 for layer in firsts[1:]]
    return 24 + widest * (_WIDE + _GAP_X), 24 + row * (_HIGH + _GAP_Y), cuts


def _middle(box: _Box, boxes: dict[str, _Box]) -> float:
    above = [boxes[name].x for name in box.inputs]
    return sum(above) / len(above) if above else 0.0


def _edge(start: _Box, end: _Box) -> str:
    x1, y1, x2, y2 = start.x + _WIDE / 2, start.y + _HIGH, end.x + _WIDE / 2, end.y
    bend = max((y2 - y1) / 2, 12)
    return f"<path class='edge' d='M{x1:.0f} {y1:.0f}C{x1:.0f} {y1 + bend:.0f} {x2:.0f} {y2 - bend:.0f} {x2:.0f} {y2:.0f}'/>"


def _drawn(box: _Box, href: str | None) -> str:
    node = box.node
    line = f"{_base(node.file)}:{node.line}" if node.line else ""
    below = ", ".join(box.named) or ("input" if node.kind == "placeholder" else line)
    told = [f"{node.name} = {node.label}", *box.named, *([f"{node.file}:{node.line}"] if node.line else [])]
    kind = {"placeholder": "placeholder", "read": "read"}.get(node.kind, "node")
    middle = box.x + _WIDE / 2
    shape = (
        f"<g class='{kind}'><title>{_text(chr(10).join(told))}</title>"
        f"<rect x='{box.x:.0f}' y='{box.y:.0f}' width='{_WIDE}' height='{_HIGH}' rx='6'/>"
        f"<text x='{middle:.0f}' y='{box.y + 16:.0f}' text-anchor='middle'>{_text(_end_of(node.label, 22))}</text>"
        f"<text class='small' x='{middle:.0f}' y='{box.y + 30:.0f}' text-anchor='middle'>{_text(_end_of(below, 26))}</text>"
        "</g>"
    )
    return f"<a href='#{href}'>{shape}</a>" if href else shape


def _end_of(text: str, width: int) -> str:
    """Of a long path the end tells more than the beginning."""
    return text if len(text) <= width else "…" + text[-width + 1 :]


def _base(file: str) -> str:
    return file.replace("\\", "/").rsplit("/", 1)[-1]


def _text(text: str) -> str:
    return escape(clean(text), quote=True)
