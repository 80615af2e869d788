"""GraphInputs: tensors and numbers from outside, and their placeholders in the operator graph. Key type: GraphInputs."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
import torch.fx

from magpy_core._compat.torch.tensor_guards import has_own_kernels, has_sizes_and_strides, version_of
from magpy_core.findings import HERE, Unsupported
from magpy_core.opgraph.autograd import EntryState
from magpy_core.opgraph.functions import MAY_RAISE, note, own_code
from magpy_core.opgraph.host import Host
from magpy_core.opgraph.scalars import Sym, is_float_division, may_raise_in_graph
from magpy_core.opgraph.values import Values
from magpy_core.refgraph.kinds import is_a
from magpy_core.refgraph.source import Source


@dataclass(eq=False)
class GraphInputs:
    """What comes from outside. ``guarded``, by id: tensors whose metadata the program depends on, with their sources."""

    host: Host
    graph: torch.fx.Graph
    values: Values
    entry: EntryState
    tensors: list[tuple[torch.fx.Node, Source, torch.Tensor]] = field(default_factory=list)
    numbers: list[tuple[torch.fx.Node, Sym]] = field(default_factory=list)
    guarded: dict[int, tuple[torch.Tensor, Source]] = field(default_factory=dict)
    _of_symbols: dict[int, tuple[Sym, torch.fx.Node]] = field(default_factory=dict)
    _last: torch.fx.Node | None = None

    def guard(self, tensor: torch.Tensor) -> Source:
        """Make the capture depend on an outside tensor's metadata; returns its source."""
        found = self.guarded.get(id(tensor))
        if found is not None:
            return found[1]
        if not has_sizes_and_strides(tensor):
            layout = "a nested tensor" if tensor.is_nested else f"a tensor of layout `{tensor.layout}`"
            hint = "Get its parts (or a dense tensor) outside the region and pass them in."
            raise Unsupported("MP106", f"{HERE} takes {layout}: MagPy can't compare its sizes.", hint=hint)
        source = self.host.source_of_outside(tensor)
        self.guarded[id(tensor)] = (tensor, source)
        self.entry.remember(tensor)
        return source

    def is_inside(self, tensor: torch.Tensor) -> bool:
        """Whether an operation of the graph created it."""
        return tensor in self.values and id(tensor) not in self.guarded

    def node(self, tensor: torch.Tensor) -> torch.fx.Node:
        """The node of a tensor: a new placeholder if the graph doesn't have one."""
        found = self.values.node(tensor)
        if found is not None:
            return found
        if has_own_kernels(type(tensor)):
            raise own_code(type(tensor), "__torch_dispatch__")
        source = self.guard(tensor)
        name = "".join(c if c.isalnum() else "_" for c in source.describe()).strip("_") or "x"
        node = self._placeholder(name[-60:] if not name[-60:][0].isdigit() else "t_" + name[-58:])
        note(node, tensor, magpy_source=source, magpy_version=version_of(tensor))
        self.tensors.append((node, source, tensor))
        self.values.add(tensor, node)
        return node

    def number(self, sym: Sym) -> torch.fx.Node:
        """The node of a symbolic scalar: an input if it is known before the graph runs, otherwise arithmetic in the
        graph."""
        if sym.kind == "node":
            return sym.payload  # type: ignore[no-any-return]
        if id(sym) not in self._of_symbols:
            self._of_symbols[id(sym)] = (sym, self._number(sym))
        return self._of_symbols[id(sym)][1]

    def _number(self, sym: Sym) -> torch.fx.Node:
        if sym.on_host and not sym.follows_sizes():
            node = self._placeholder(f"scalar_{len(self.numbers)}")
            node.meta["magpy_scalar"] = type(sym.hint)
            node.meta["magpy_hint"] = sym.hint
            self.numbers.append((node, sym))
            return node
        if sym.kind == "source":  # a dimension of a graph input: read it in the graph so that shapes stay symbolic
            source = sym.payload
            tensor = next(t for t, s in self.guarded.values() if s is source.base)
            return self.graph.call_method("size", (self.node(tensor), source.key))
        node = self.graph.call_function(sym.payload, tuple(self.number(a) if is_a(a, Sym) else a for a in sym.args))
        if may_raise_in_graph(sym.payload, sym.args) and not is_float_division(sym.payload, sym.args):
            node.meta[MAY_RAISE] = True
        return node

    def _placeholder(self, name: str) -> torch.fx.Node:
        """A placeholder after all others and before every operation."""
        last = self._last
        with self.graph.inserting_before() if last is None else self.graph.inserting_after(last):
            self._last = self.graph.placeholder(name)
        return self._last
