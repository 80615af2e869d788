"""The operator graph and the RefGraph with their layout. Key functions: operator_graph, reference_graph.

A node's ``place`` is the user's line; the library's line below it is in the tooltip.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from lsp_server.features.documents import key_of
from lsp_server.features.views.shown import Json, Lines, Shown
from lsp_server.formats import layered
from lsp_server.formats.html.graph import boxes_of
from lsp_server.formats.layered import Box
from lsp_server.formats.view import clean
from magpy_core.findings.details import CaptureDetail, NodeDetail, ObjectDetail

_LISTED = 12


def operator_graph(capture: CaptureDetail, lines: Lines) -> Json:
    boxes = boxes_of(capture.nodes)
    nodes = []
    for box in boxes.values():
        node = box.node
        file, line = user_line(node)
        at = f"{_base(file)}:{line}" if line else ""
        below = ", ".join(box.named) or ("input" if node.kind == "placeholder" else at)
        tooltip = [f"{node.name} = {node.label}({', '.join(node.inputs)})" if node.kind != "placeholder" else node.label]
        tooltip += [f"returns {node.tensor}"] if node.tensor else []
        tooltip += [f"with {name}" for name in box.named]
        tooltip += [f"at {at}"] if at else []
        tooltip += [f"in {_library(node.file)}:{node.line}"] if node.user_line else []
        nodes.append({
            "name": node.name, "label": clean(node.label), "below": clean(below), "kind": node.kind,
            "tooltip": [clean(text) for text in tooltip], "place": lines.place(file, line),
        })  # fmt: skip
    width, height, cuts = layered.place(boxes)
    return _drawn(boxes, nodes, width, height) | {"cuts": [round(y) for y in cuts], "left": capture.cut}


def reference_graph(capture: CaptureDetail, lines: Lines) -> Json:
    names = [f"o{i}" for i in range(len(capture.objects))]
    boxes: dict[str, Box] = {}
    for name, o in zip(names, capture.objects, strict=True):
        # Objects are in the order of first touch; a child that comes before its parent is drawn as a root.
        parent = names[o.parent] if o.parent >= 0 and names[o.parent] in boxes else None
        boxes[name] = Box(inputs=[parent] if parent else [], free=True)
    nodes = []
    for name, o in zip(names, capture.objects, strict=True):
        facts = [*o.writes, *o.reads]
        place = next((at for fact in facts if (at := lines.place(fact.file, fact.line)) is not None), None)
        tooltip = [f"{fact.text}{f'  ({_base(fact.file)}:{fact.line})' if fact.line else ''}" for fact in facts]
        left = len(tooltip) - _LISTED
        tooltip = [f"{o.name}: {o.kind}", *tooltip[:_LISTED], *([f"and {left} more"] if left > 0 else [])]
        nodes.append({
            "name": name, "label": clean(_label(o)), "below": clean(o.kind), "kind": "written" if o.writes else "object",
            "tooltip": [clean(text) for text in tooltip], "place": place,
        })  # fmt: skip
    return _drawn(boxes, nodes, *layered.place_trees(boxes)) | {"across": True, "left": capture.objects_cut}


def _drawn(boxes: Mapping[str, Box], nodes: list[Json], width: float, height: float) -> Json:
    index = {name: i for i, name in enumerate(boxes)}
    for node, box in zip(nodes, boxes.values(), strict=True):
        node.update(x=round(box.x), y=round(box.y))
    return {
        "width": round(width),
        "height": round(height),
        "boxWidth": layered.WIDE,
        "boxHeight": layered.HIGH,
        "cuts": [],
        "nodes": nodes,
        "edges": [[index[start], index[name]] for name, box in boxes.items() for start in box.inputs],
        "left": 0,
        "across": False,
    }


def _label(o: ObjectDetail) -> str:
    return o.step if o.parent >= 0 and o.step else o.name


def user_line(node: NodeDetail) -> tuple[str, int]:
    return node.users


def nodes_of_line(runs: Iterable[Shown], key: str, line: int) -> list[Json]:
    """The nodes of a line of a file (0-based, current text), one entry per capture, newest first."""
    found = []
    for shown in runs:
        details = shown.found.details
        for region in details.regions if details is not None else []:
            for number, capture in reversed(list(enumerate(region.captures[::-1], start=1))):
                names = [n.name for n in capture.nodes if _is_on(shown, n, key, line)]
                if names:
                    name = shown.found.regions[region.region].name if region.region in shown.found.regions else region.region
                    found.append({
                        "run": shown.key, "label": shown.label, "region": region.region, "name": name, "capture": number,
                        "of": len(region.captures), "nodes": names,
                    })  # fmt: skip
    return found


def _is_on(shown: Shown, node: NodeDetail, key: str, line: int) -> bool:
    for file, number in {(node.file, node.line), user_line(node)}:
        if number and key_of(file) == key:
            place = shown.lines.place(file, number)
            if place is not None and place["line"] == line:
                return True
    return False


def _library(file: str) -> str:
    """The path below the installed packages: ``torch/nn/modules/linear.py``."""
    return re.split(r"(?:site|dist)-packages/", file.replace("\\", "/"))[-1]


def _base(file: str) -> str:
    return file.replace("\\", "/").rsplit("/", 1)[-1]
