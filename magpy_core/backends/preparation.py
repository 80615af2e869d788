"""What every compiled graph needs before AOTAutograd sees it: a copy, the default device written out, and refusals.

Key function: `prepare`.
"""

from __future__ import annotations

import torch.fx

from magpy_core._compat.fx_targets import device_constructors, printable_targets
from magpy_core.backends.scalar_ops import name_of
from magpy_core.findings import Unsupported

#: Operations that see a tensor's place in its storage, which a capture leaves open (see `fakes.make_fake_inputs`).
_SEES_OFFSET = {"as_strided": 3, "as_strided_": 3, "as_strided_copy": 3, "as_strided_scatter": 4}


def prepare(gm: torch.fx.GraphModule, device: torch.device) -> torch.fx.GraphModule:
    """A copy of ``gm`` that the compilers may own and change; raises Unsupported for what they would compile wrongly.

    ``device`` is the default device of the program at this moment.
    """
    graph = torch.fx.Graph()
    graph.output(graph.graph_copy(gm.graph, {}))
    graph.lint()
    copied = torch.fx.GraphModule(gm, graph)
    _refuse(copied)
    _write_default_device(copied, device)
    printable_targets(copied)
    return copied


def _refuse(gm: torch.fx.GraphModule) -> None:
    for node in gm.graph.nodes:
        name = name_of(node.op, node.target) if node.op in ("call_function", "call_method") else ""
        position = _SEES_OFFSET.get(name)
        if position is not None:
            offset = node.kwargs.get("storage_offset", node.args[position] if len(node.args) > position else None)
            if offset is not None:
                raise Unsupported("MP902", f"{name} with a storage offset addresses memory outside the tensor it is given")


def _write_default_device(gm: torch.fx.GraphModule, device: torch.device) -> None:
    """``torch.zeros(3)`` goes to the default device of this moment; the compilers run without the mode that says which."""
    if device.type == "cpu":
        return
    constructors = device_constructors()
    for node in gm.graph.nodes:
        if node.op == "call_function" and node.target in constructors and node.kwargs.get("device") is None:
            node.kwargs = {**node.kwargs, "device": device}
    gm.recompile()
