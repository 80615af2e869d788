"""Where rounding first makes compiled code differ from eager mode: of which operation, in which step of the program. Key
types: Origin, FirstDifference; key function: first_operation.

Compiled code gives no values from its middle. So the graph's ATen operations, and those of its backward pass, are compiled
once more as one graph that also gives a copy of each result. What comes before the first result that differs is equal bit by
bit, so it is this operation that is computed otherwise, and not what it takes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.fx

from magpy_core._compat.torch.operator_schemas import computed
from magpy_core._compat.torch.torch_state import preserve_torch_state, random_streams, restore_streams
from magpy_core._compat.torch.warning_filters import no_warnings
from magpy_core.limits import LIMITS
from magpy_core.opgraph.functions import operator_name
from magpy_core.verification.bisect import compiled_by
from magpy_core.verification.copies import Copies, free_memory
from magpy_core.verification.difference import Values, apart
from magpy_core.verification.first_call import Verdict
from magpy_core.verification.smallest import Compile, operations_of


@dataclass(frozen=True)
class Origin:
    """``operation``: its name in ATen (``addmm``); ``where``: the program's line, ``file:line``, empty if not known;
    ``apart``: how far an element is from eager mode's, as a part of the largest; ``step``: the program's, from 1."""

    operation: str
    where: str
    apart: float
    step: int = 0


@dataclass
class FirstDifference:
    """Looks for the first call of a run that differs from eager mode by as little as a bit, and for the operation that does.
    What it finds is written to ``origin.json`` in ``folder``: ``origin``, null if none; ``why``: what prevented that.
    ``after``: only calls after this step of the program count; earlier differences have left no trace."""

    folder: str
    after: int = 0
    is_open: bool = True
    why: list[str] = field(default_factory=list)

    def wants(self, step: int) -> bool:
        """Whether calls in ``step`` (from 1) are to be compared."""
        return self.is_open and step > self.after

    def look(self, verdict: Verdict, gm: torch.fx.GraphModule, inputs: Sequence[Any], step: int) -> None:
        """``verdict``: about a call of the compiled code of ``gm``, in ``step`` (from 1)."""
        if not verdict.unchecked and verdict.difference is None and not verdict.apart:
            return
        found: Origin | None = None
        if verdict.unchecked:
            why = f"calls of compiled code could not be compared: {verdict.unchecked}"
        else:
            self.is_open = False
            try:
                found, why = first_operation(gm, inputs)
            except Exception as error:  # of the graph, when it is taken apart, or of the compiler
                why = f"a graph could not be taken apart ({type(error).__name__}: {str(error)[:160]})"
        if why and why not in self.why:
            self.why.append(why)
        origin = None if found is None else {**asdict(found), "step": step}
        Path(self.folder, "origin.json").write_text(json.dumps({"origin": origin, "why": self.why}), "utf-8")


def first_operation(
    gm: torch.fx.GraphModule, inputs: Sequence[Any], compile_part: Compile | None = None
) -> tuple[Origin | None, str]:
    """The first operation of ``gm``, or of a backward pass through its results, whose compiled code gives other bits for
    ``inputs``; or None, and why it can't be told."""
    compile_part = compile_part or (lambda graph, given: compiled_by("inductor", graph, given))
    with preserve_torch_state(), no_warnings():
        flat, given = operations_of(gm, inputs)
        copies = Copies(given, range(len(given)))
        streams = random_streams()
        with torch.no_grad():
            eager = _Kept(flat, LIMITS.verify_memory * free_memory() / 2)
            eager.run(*copies.made())
            code = compile_part(_with_results(flat, eager.nodes), given)
            restore_streams(streams)
            compiled = code(copies.made())
    for (node, _), value, other in zip(eager.nodes, eager.values, compiled, strict=True):
        if size := apart(Values({"": value}), Values({"": other})):
            where = node.meta.get("stack_trace") or ""
            return Origin(operator_name(node).partition(".")[0], str(where), size), ""
    if eager.is_full:
        return None, "the values of its operations take too much memory"
    return None, "with the values of all operations kept, compiled code gives eager mode's bits"


class _Kept(torch.fx.Interpreter):
    """Keeps copies of what the operations compute, in at most so many bytes. ``nodes``: of each, the operation and the node
    that has the value, in the order of ``values``."""

    def __init__(self, flat: torch.fx.GraphModule, most: float) -> None:
        super().__init__(flat)
        self._left = most
        self.values: list[torch.Tensor] = []
        self.nodes: list[tuple[torch.fx.Node, tuple[torch.fx.Node, torch.fx.Node]]] = []
        self.is_full = False

    def run_node(self, n: torch.fx.Node) -> Any:
        result = super().run_node(n)
        for maker, node in computed(n):
            if "empty" in str(maker.target):  # what is in new memory, nothing has computed
                continue
            value = result if node is n else self.env[node]
            if not isinstance(value, torch.Tensor) or not value.numel() or value.layout is not torch.strided:
                continue
            self._left -= value.numel() * value.element_size()
            self.is_full |= self._left < 0
            if not self.is_full:
                self.values.append(value.clone())
                self.nodes.append((maker, (n, node)))
        return result


def _with_results(
    flat: torch.fx.GraphModule, kept: Sequence[tuple[torch.fx.Node, tuple[torch.fx.Node, torch.fx.Node]]]
) -> torch.fx.GraphModule:
    """``flat``, which gives copies of these values instead of its own results: each after the node at which it is there."""
    wanted: dict[torch.fx.Node, list[torch.fx.Node]] = {}
    for _, (after, node) in kept:
        wanted.setdefault(after, []).append(node)
    graph = torch.fx.Graph()
    copies: dict[torch.fx.Node, torch.fx.Node] = {}
    given: list[torch.fx.Node] = []
    for node in flat.graph.nodes:
        if node.op == "output":
            continue
        copies[node] = graph.node_copy(node, lambda one: copies[one])
        given += [graph.call_function(torch.ops.aten.clone.default, (copies[one],)) for one in wanted.get(node, ())]
    graph.output(tuple(given))
    return torch.fx.GraphModule(flat, graph)
