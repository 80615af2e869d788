"""Arguments of an operation as FX arguments. Key type: Arguments."""

from __future__ import annotations

from typing import Any

import torch
import torch.fx

from magpy_core.findings import HERE, Unsupported
from magpy_core.opgraph import functions as fns
from magpy_core.opgraph.operator_graph import OperatorGraph
from magpy_core.opgraph.scalars import Sym
from magpy_core.refgraph import kinds
from magpy_core.refgraph.kinds import is_a

_CONST_TYPES = (bool, int, float, complex, str, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format,
                type(Ellipsis), bytes, torch.fx.Node)  # fmt: skip
_TENSOR_TYPE = type(torch.FloatTensor)


class Arguments:
    """Converts the arguments of one operation. ``varying``: the symbolic scalars among them, with their values now."""

    def __init__(self, ops: OperatorGraph) -> None:
        self.ops = ops
        self.varying: list[tuple[Sym, Any]] = []

    @property
    def vary_beyond_sizes(self) -> bool:
        """Whether a number among them varies that the shape tracker does not know from the sizes of inputs."""
        leaves = (sym.leaves() for sym, _ in self.varying)
        return any(not all(leaf.kind == "source" and leaf.payload.kind == "size" for leaf in found) for found in leaves)

    def convert(self, value: Any) -> Any:
        """An argument as an FX argument; raises Unsupported(MP106) for what a graph can't hold."""
        if is_a(value, torch.Tensor):
            return self.ops.inputs.node(value)
        if type(value) in (int, float):
            sym = self.ops.scalars.get(value)
            if sym is None:
                return value
            self.varying.append((sym, value))
            return self.ops.inputs.number(sym)
        if is_a(value, _CONST_TYPES) or fns.is_python_dtype(value):
            return fns.constant(value)
        if is_a(value, (list, tuple, dict)):
            return self._container(value)
        if is_a(value, slice):
            return slice(self.convert(value.start), self.convert(value.stop), self.convert(value.step))
        if is_a(value, range):
            return list(value)
        if is_a(value, torch.Generator):
            raise Unsupported(
                "MP106",
                f"{HERE} draws from a torch.Generator, whose state can't be part of a graph.",
                hint="Draw from torch's own generator (`torch.manual_seed` seeds it), or draw outside the region.",
            )
        if kinds.is_number_of_numpy(value):
            return value.item()
        if type(value) is _TENSOR_TYPE:  # ``x.type(torch.LongTensor)``
            return f"{value.__module__}.{value.__name__}"
        if kinds.holds_memory(type(value)):
            if self.ops.host.graph_incomplete:  # a refused call may have made it
                raise Unsupported("", "")
            raise Unsupported("MP105", fns.OUTSIDE_ARRAY, hint=fns.OUTSIDE_ARRAY_HINT)
        raise Unsupported("MP106", f"{HERE} takes a value of type `{type(value).__name__}`, which a graph can't hold.")

    def _container(self, value: Any) -> Any:
        self.ops.host.guard_contents(value)
        if is_a(value, dict):
            return {k: self.convert(v) for k, v in value.items()}
        items = [self.convert(v) for v in value]
        if is_a(value, list):
            return items
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
