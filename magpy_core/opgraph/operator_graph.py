"""OperatorGraph: the FX graph of one recording, and the parts that know what its values are. Key type: OperatorGraph."""

from __future__ import annotations

from typing import Any

import torch
import torch.fx

from magpy_core.opgraph.autograd import EntryState
from magpy_core.opgraph.data_shapes import is_constant
from magpy_core.opgraph.host import Host
from magpy_core.opgraph.inputs import GraphInputs
from magpy_core.opgraph.scalars import ScalarTable, Sym
from magpy_core.opgraph.shapes import ShapeTracker
from magpy_core.opgraph.values import Values
from magpy_core.opgraph.writes import Writes


class OperatorGraph:
    """``op_depth``: how many recorded calls are running; what happens inside of one belongs to it.
    ``read_inside``: tensors that native code has read as numbers in the running call. ``failure``: what a recorder of ours
    raised; nothing is recorded after it."""

    def __init__(self, scalars: ScalarTable, host: Host, dims: dict[str, set[int]], vary: bool = False) -> None:
        self.host = host
        self.scalars = scalars
        self.graph = torch.fx.Graph()
        self.values = Values(self.graph)
        self.entry = EntryState()
        self.inputs = GraphInputs(host, self.graph, self.values, self.entry)
        self.writes = Writes(host, self.inputs)
        self.shapes = ShapeTracker(host, scalars, self.inputs, self.values, dims, vary)
        self.op_depth = 0
        self.read_inside: list[torch.Tensor] = []
        self.drew_random = False
        self.failure: Exception | None = None
        self.recorder: Any = None  # the function mode and the dispatch mode that are at work
        self.shadow: Any = None

    def is_data(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor may differ at each call: not one that the region made of plain numbers."""
        node = self.values.node(tensor)
        return node is None or self.writes.has_touched(tensor) or not is_constant(node)

    def read_number(self, node: torch.fx.Node, number: Any) -> Sym:
        """The symbol of ``number``, read from the tensor of ``node`` where the program is now."""
        read = self.graph.call_method("item", (node,))
        read.meta["magpy_site"] = self.host.site
        return Sym("node", read, (), number)

    def fix_sizes(self, tensor: torch.Tensor) -> None:
        """Python sees sizes that follow from data: the path holds for these very sizes."""
        if not self.values.is_shaped_by_data([tensor]):
            return
        read = self.graph.call_method("size", (self.inputs.node(tensor),))
        read.meta["magpy_site"] = self.host.site
        sizes = tensor.size()
        self.host.branch(Sym("node", read, (), sizes), sizes, "sizes")
        self.values.fix_sizes(tensor)
        self.shapes.fix(tensor)
