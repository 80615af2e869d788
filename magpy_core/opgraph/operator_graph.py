"""OperatorGraph: the FX graph of one recording, and the parts that know what its values are. Key type: OperatorGraph."""

from __future__ import annotations

from typing import Any

import torch
import torch.fx

from magpy_core.opgraph.autograd import EntryState
from magpy_core.opgraph.data_shapes import is_constant
from magpy_core.opgraph.host import Host
from magpy_core.opgraph.inputs import GraphInputs
from magpy_core.opgraph.leaves import Leaves
from magpy_core.opgraph.scalars import ScalarTable, Sym
from magpy_core.opgraph.shapes import ShapeTracker
from magpy_core.opgraph.values import Values
from magpy_core.opgraph.writes import Writes


class OperatorGraph:
    """``op_depth``: how many recorded calls are running; operations inside one of them belong to it. ``read_inside``:
    tensors that native code has read as numbers in the running call. ``failure``: an exception of one of our recorders;
    nothing is recorded after it. ``custom_functions``: classes of ``autograd.Function`` whose methods were found to depend
    only on their arguments."""

    def __init__(self, scalars: ScalarTable, host: Host, dims: dict[str, set[int]], vary: bool = False) -> None:
        self.host = host
        self.scalars = scalars
        self.graph = torch.fx.Graph()
        self.values = Values(self.graph)
        self.entry = EntryState()
        self.inputs = GraphInputs(host, self.graph, self.values, self.entry)
        self.writes = Writes(host, self.inputs)
        self.leaves = Leaves(host, self.inputs)
        self.shapes = ShapeTracker(host, scalars, self.inputs, self.values, dims, vary)
        self.op_depth = 0
        self.read_inside: list[torch.Tensor] = []
        self.custom_functions: set[type] = set()
        self.failure: Exception | None = None
        self.recorder: Any = None  # the active function mode
        self.shadow: Any = None  # the active dispatch mode

    def is_data(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor may differ at each call: true unless the region created it from constants."""
        node = self.values.node(tensor)
        return node is None or self.writes.has_touched(tensor) or not is_constant(node)

    def read_number(self, node: torch.fx.Node, number: Any) -> Sym:
        """The symbol of ``number``, which the program reads from the tensor of ``node`` at the current line."""
        read = self.graph.call_method("item", (node,))
        read.meta["magpy_site"] = self.host.site
        return Sym("node", read, (), number)

    def fix_sizes(self, tensor: torch.Tensor) -> None:
        """Specialize the sizes of ``tensor`` if they follow from data, because Python sees them."""
        if not self.values.is_shaped_by_data([tensor]):
            return
        read = self.graph.call_method("size", (self.inputs.node(tensor),))
        read.meta["magpy_site"] = self.host.site
        sizes = tensor.size()
        self.host.branch(Sym("node", read, (), sizes), sizes, "sizes")
        self.values.fix_sizes(tensor)
        self.shapes.fix(tensor)
