"""Layout of graphs for the HTML report and the editor. Key names: Box, place, place_trees.

``place``: layers from top to bottom by the longest path from the inputs; in a layer, boxes are near their inputs.
``place_trees``: trees from left to right, one line per box, in several columns if there are many.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil, sqrt

WIDE, HIGH = 150, 38
GAP_X, GAP_Y = 18, 34
_EDGE = 12
_MAX_PER_ROW = 40  # wider layers are folded: an optimizer has hundreds of parallel parameter updates
_MIN_PER_ROW = 6
_SHAPE = 1.5  # the ratio of width to height for folded layers
_STEP = 60  # between a box and its children, in a tree


@dataclass(kw_only=True)
class Box:
    """``inputs`` are names of earlier boxes. ``free``: an input of the graph, which may be above its segment's cut."""

    inputs: list[str]
    segment: int = 0
    free: bool = False
    layer: int = 0
    x: float = 0.0
    y: float = 0.0


def place(boxes: Mapping[str, Box]) -> tuple[float, float, list[float]]:
    """Sets each box's position; returns width, height and the heights of the cuts between segments."""
    _layers(boxes)
    per_row = ceil(sqrt(len(boxes) * _SHAPE * (HIGH + GAP_Y) / (WIDE + GAP_X)))
    per_row = min(max(per_row, _MIN_PER_ROW), _MAX_PER_ROW)
    layers: dict[int, list[Box]] = {}
    for box in boxes.values():
        layers.setdefault(box.layer, []).append(box)
    row = 0
    tops: dict[int, float] = {}
    widest = max((min(len(layer), per_row) for layer in layers.values()), default=0)
    for number in sorted(layers):
        layer = sorted(layers[number], key=lambda box: _middle(box, boxes))
        tops[number] = row * (HIGH + GAP_Y)
        for start in range(0, len(layer), per_row):
            line = layer[start : start + per_row]
            left = (widest - len(line)) / 2
            for i, box in enumerate(line):
                box.x = _EDGE + (left + i) * (WIDE + GAP_X)
                box.y = _EDGE + row * (HIGH + GAP_Y)
            row += 1
    firsts: dict[int, int] = {}
    for box in boxes.values():
        if not box.free:
            firsts[box.segment] = min(box.layer, firsts.get(box.segment, box.layer))
    cuts = [_EDGE + tops[firsts[segment]] - GAP_Y / 2 for segment in sorted(firsts)[1:]]
    return 2 * _EDGE + widest * (WIDE + GAP_X), 2 * _EDGE + row * (HIGH + GAP_Y), cuts


def _layers(boxes: Mapping[str, Box]) -> None:
    floor, deepest, segment = 0, -1, 0
    for box in boxes.values():  # in the order of the program, so inputs come first
        if box.segment > segment:
            segment, floor = box.segment, deepest + 1
        above = max((boxes[name].layer for name in box.inputs), default=-1) + 1
        box.layer = above if box.free else max(above, floor)
        deepest = max(deepest, box.layer)


def _middle(box: Box, boxes: Mapping[str, Box]) -> float:
    above = [boxes[name].x for name in box.inputs]
    return sum(above) / len(above) if above else 0.0


def place_trees(boxes: Mapping[str, Box]) -> tuple[float, float]:
    """Sets each box's position; each has at most one input, its parent. Returns width and height."""
    children: dict[str, list[str]] = {}
    for name, box in boxes.items():
        for parent in box.inputs:
            children.setdefault(parent, []).append(name)
    most = max(ceil(sqrt(len(boxes) * 4)), 12)  # lines in a column, if the trees allow it
    left = right = tallest = 0.0
    line = 0
    for root in (name for name, box in boxes.items() if not box.inputs):
        tree = list(_walk(root, children))
        if line and line + len(tree) > most:
            left, line = right + _STEP, 0
        for name, depth in tree:
            box = boxes[name]
            box.layer = depth
            box.x, box.y = _EDGE + left + depth * (WIDE + _STEP), _EDGE + line * (HIGH + _EDGE)
            right, tallest = max(right, box.x + WIDE), max(tallest, box.y + HIGH)
            line += 1
    return right + _EDGE, tallest + _EDGE


def _walk(root: str, children: Mapping[str, list[str]]) -> Iterator[tuple[str, int]]:
    """A tree's boxes with their depth, each before its children; iterative, for deep trees."""
    waiting = [(root, 0)]
    while waiting:
        name, depth = waiting.pop()
        yield name, depth
        waiting += [(child, depth + 1) for child in reversed(children.get(name, ()))]
