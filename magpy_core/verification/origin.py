"""Where rounding first makes compiled code differ from eager mode: of which operation, in which step of the program. Key
types: Origin, FirstDifference; key functions: first_operation, found_within.

Compiled code gives no values from its middle. So the graph's ATen operations, and those of its backward pass, are compiled
once more as one graph that also gives a copy of each result. What comes before the first result that differs is equal bit by
bit, so it is this operation that is computed otherwise, and not what it takes. A forked process does so, which is ended when
the time is up: compiling can't be stopped otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.fx

from magpy_core._compat.torch.operator_schemas import computed
from magpy_core._compat.torch.torch_state import preserve_torch_state, random_streams, restore_streams
from magpy_core._compat.torch.warning_filters import no_warnings
from magpy_core.backends.background import available
from magpy_core.limits import LIMITS
from magpy_core.opgraph.functions import operator_name
from magpy_core.verification.beside import Tracing
from magpy_core.verification.bisect import compiled_by
from magpy_core.verification.cause import Cause
from magpy_core.verification.copies import Copies, free_memory
from magpy_core.verification.difference import Values, apart
from magpy_core.verification.first_call import Verdict
from magpy_core.verification.smallest import Compile, operations_of

_LONGER = "`magpy-lsp verify --origin-seconds N` looks longer"


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
    What it finds is written to ``origin.json`` in ``folder``: ``origin``, null if none; ``why``: what prevented that;
    ``until``: the step in which the time was up before any call differed, null if it was not. ``after``: only calls after
    this step of the program count; earlier differences have left no trace. ``seconds``: for comparing calls, and as long for
    the operation of the one that differs."""

    folder: str
    after: int = 0
    seconds: float = LIMITS.origin_seconds
    is_open: bool = True
    why: list[str] = field(default_factory=list)
    _spent: float = 0.0
    _calls: int = 0

    def wants(self, step: int) -> bool:
        """Whether calls in ``step`` (from 1) are to be compared."""
        return self.is_open and step > self.after

    def look(self, verdict: Verdict, gm: torch.fx.GraphModule, inputs: Sequence[Any], step: int) -> None:
        """``verdict``: about a call of the compiled code of ``gm``, in ``step`` (from 1)."""
        self._spent += verdict.seconds
        self._calls += 1
        differs = not verdict.unchecked and (verdict.difference is not None or bool(verdict.apart))
        self.is_open = not differs and self._spent < self.seconds
        found: Origin | None = None
        why, until = "", None
        if verdict.unchecked:
            why = f"calls of compiled code could not be compared: {verdict.unchecked}"
        if differs:
            found, why = found_within(self.seconds, gm, inputs)
        elif not self.is_open:
            until = step
            self._add(why)
            calls = f"{self._calls:,} calls of compiled code, up to step {step:,}"
            why = f"it was looked for in {calls}, for {self._spent:.0f} s, and none of them differs; {_LONGER}"
        if why or differs:
            self._add(why)
            origin = None if found is None else {**asdict(found), "step": step}
            data = {"origin": origin, "why": self.why, "until": until}
            Path(self.folder, "origin.json").write_text(json.dumps(data), "utf-8")

    def _add(self, why: str) -> None:
        if why and why not in self.why:
            self.why.append(why)


def found_within(seconds: float, gm: torch.fx.GraphModule, inputs: Sequence[Any]) -> tuple[Origin | None, str]:
    """As `first_operation`, if that takes no longer. It is done beside the program, which waits."""
    expected = LIMITS.compile_any + LIMITS.compile_operation * len(gm.graph.nodes)
    if not available():
        if expected > seconds:
            return None, f"it would take about {expected:.0f} s to compile its graph once more; {_LONGER}"
        return _first_operation(gm, inputs)

    def work(report: Callable[[Cause], object]) -> Cause:
        found, why = _first_operation(gm, inputs)
        return Cause(json.dumps([None if found is None else asdict(found), why]))

    try:
        tracing = Tracing(work)
    except OSError as error:
        return None, f"no process could be started for the search ({error})"
    try:
        tracing.wait(seconds)
        if not tracing.has_ended:
            return None, f"it was looked for in the first call that differs, and {seconds:g} s did not suffice; {_LONGER}"
        cause = tracing.news()
    finally:
        tracing.cancel()
    if cause is None:
        return None, "the process that looked for it was ended, perhaps for the memory that it took"
    try:
        found, why = json.loads(cause.text)
    except ValueError:  # it says what has failed
        return None, cause.text
    return None if found is None else Origin(**found), why


def _first_operation(gm: torch.fx.GraphModule, inputs: Sequence[Any]) -> tuple[Origin | None, str]:
    try:
        return first_operation(gm, inputs)
    except Exception as error:  # of the graph, when it is taken apart, or of the compiler
        return None, f"a graph could not be taken apart ({type(error).__name__}: {str(error)[:160]})"


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
