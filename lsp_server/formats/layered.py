"""Places for the boxes of a graph, in layers: for pictures in the report and in the editor. Key names: Box, place.

Layers go from top to bottom by the longest way from the inputs; in a layer, boxes stand near what they use.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

WIDE, HIGH = 150, 38
GAP_X, GAP_Y = 18, 34
_EDGE = 12
_PER_ROW = 40  # a layer wider than this is folded: hundreds of updates of parameters stand beside each other


@dataclass(kw_only=True)
class Box:
    """``inputs`` name boxes that come earlier. ``free``: an input of the graph, which may stand above its segment's cut."""

    inputs: list[str]
    segment: int = 0
    free: bool = False
    layer: int = 0
    x: float = 0.0
    y: float = 0.0


def place(boxes: Mapping[str, Box]) -> tuple[float, float, list[float]]:
    """Give each box its place; returns width, height and the heights of the cuts between segments."""
    _layers(boxes)
    layers: dict[int, list[Box]] = {}
    for box in boxes.values():
        layers.setdefault(box.layer, []).append(box)
    row = 0
    tops: dict[int, float] = {}
    widest = max((min(len(layer), _PER_ROW) for layer in layers.values()), default=0)
    for number in sorted(layers):
        layer = sorted(layers[number], key=lambda box: _middle(box, boxes))
        tops[number] = row * (HIGH + GAP_Y)
        for start in range(0, len(layer), _PER_ROW):
            line = layer[start : start + _PER_ROW]
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
