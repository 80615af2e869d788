"""A region's captures in full, for reports with details; never while it is called. Key name: region_detail."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import torch

from magpy_core.findings.details import CaptureDetail, GuardDetail, NodeDetail, RegionDetail
from magpy_core.opgraph.functions import node_name, reads_value
from magpy_core.refgraph.printer import full_place, to_details

if TYPE_CHECKING:
    from magpy_core.capture.build import Capture
    from magpy_core.regions.region_protocol import RegionView

_NODES = _OBJECTS = 4000
_CODE = 400_000


def region_detail(region: RegionView) -> RegionDetail:
    return RegionDetail(region.id, [_capture(capture) for capture in region.captures])


def _capture(capture: Capture) -> CaptureDetail:
    nodes = list(capture.nodes)
    objects = to_details(capture.refgraph.nodes.values(), capture.refgraph.reads)
    where = {id(node): index for index, segment in enumerate(capture.segments) for node in segment.nodes}
    return CaptureDetail(
        guards=[_guard(read) for read in capture.refgraph.reads],
        nodes=[_node(node, where.get(id(node), 0)) for node in nodes[:_NODES]],
        guard_code=capture.guards.code[:_CODE],
        replay_code=capture.replay.code[:_CODE],
        generated_code=[code[:_CODE] for code in capture.generated_code],
        cut=max(len(nodes) - _NODES, 0),
        rest="\n".join(map(_line, nodes[_NODES:]))[:_CODE],
        objects=objects[:_OBJECTS],
        objects_cut=max(len(objects) - _OBJECTS, 0),
        objects_rest="\n".join(f"{o.name}: {o.kind}" for o in objects[_OBJECTS:])[:_CODE],
    )


def _line(node: torch.fx.Node) -> str:
    """One line for a node that is only listed."""
    shown = _node(node, 0)
    made = f"input  {shown.label}" if shown.kind == "placeholder" else f"{shown.label}({', '.join(shown.inputs)})"
    file, line = shown.users
    at = f"  # {file.replace(os.sep, '/').rpartition('/')[2]}:{line}" if line else ""
    return f"{shown.name} = {made}{f': {shown.tensor}' if shown.tensor else ''}{at}"


def _guard(read: Any) -> GuardDetail:
    name, value = read.kind.subject(read)
    return GuardDetail(name, read.kind.check(read.expected), value, *full_place(read.site), read.kind.text(read))


def _node(node: torch.fx.Node, segment: int) -> NodeDetail:
    if node.op == "placeholder":
        source = node.meta.get("magpy_source")
        label = source.describe() if source is not None else node.name
        return NodeDetail(node.name, "placeholder", label, [], segment, tensor=_tensor(node))
    label = node_name(node)
    kind = "read" if reads_value(node) else "call"
    inputs = [n.name for n in node.all_input_nodes]
    place = full_place(node.meta.get("magpy_site"))
    user_file, user_line = node.meta.get("magpy_user") or ("", 0)
    return NodeDetail(node.name, kind, label, inputs, segment, *place, _tensor(node), user_file, user_line)


def _tensor(node: torch.fx.Node) -> str:
    seen = node.meta.get("magpy_tensor")
    if seen is None:
        return ""
    dtype, shape = seen
    return f"{str(dtype).removeprefix('torch.')}{list(shape)}"
