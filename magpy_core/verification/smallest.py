"""The smallest part of a graph of which compiled code differs from eager mode. Key functions: smallest_part,
explained; key type: Part.

The graph runs once, and the ATen operations of it and of its backward pass are traced: a list. A part is a stretch of that
list, with what it takes from before as its inputs; it is compiled alone, and compared as whole graphs are (`check`). Two
binary searches find where the shortest beginning that differs ends, and where the shortest part up to there begins. Where a
compiler makes one kernel of several operations, they differ together only, and the part has all of them. What its difference
does not need is then left out of its results, and of what it writes, with all that only these need.

A list of ATen operations has no history of its own: which results have a gradient, a compiler decides for whole graphs. So
where none of its stretches differs, those of the recorded graph are compared, at last with their gradients.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.fx
from torch.fx.traceback import preserve_node_meta

from magpy_core._compat.torch.operators_trace import trace_operators, untraced
from magpy_core._compat.torch.tensor_guards import storage_key
from magpy_core._compat.torch.torch_state import preserve_torch_state, random_streams, restore_streams
from magpy_core.limits import LIMITS
from magpy_core.opgraph.functions import operator_name
from magpy_core.opgraph.places import place
from magpy_core.verification.copies import Copies
from magpy_core.verification.difference import Difference, elementwise, units
from magpy_core.verification.first_call import check, is_live, roots_among, runnable
from magpy_core.verification.noise import Noisy

#: Of a ``getitem`` that selects elements of a tensor, and does not take one of an operation's results.
_SELECTS = "magpy_selects"
#: Compiles a graph for inputs; what it returns takes them as a list.
Compile = Callable[[torch.fx.GraphModule, Sequence[Any]], Callable[[list[Any]], Any]]


@dataclass(frozen=True)
class Part:
    """``graph``: of ATen operations; ``inputs``: for which compiled code differs from eager mode; ``written``: positions of
    those that may be written through others. ``of``: how many operations the whole graph has; ``lines``: the program's, as
    far as known; ``difference``: the largest."""

    graph: torch.fx.GraphModule
    inputs: tuple[Any, ...]
    written: tuple[int, ...]
    of: int
    lines: tuple[str, ...]
    difference: Difference | None = None

    @property
    def operations(self) -> list[str]:
        return [
            str(node.target) if isinstance(node.target, torch._ops.OpOverload) else operator_name(node)
            for node in self.graph.graph.nodes
            if computes(node)
        ]


def smallest_part(
    gm: torch.fx.GraphModule,
    inputs: Sequence[Any],
    compile_part: Compile,
    on_smaller: Callable[[Part], object] = lambda part: None,
) -> Part | None:
    """None if the operations, one after the other, do not differ from their compiled code: then it is not the compiler that
    differs, but what the graph was made from. ``on_smaller``: called with each smaller part that differs."""
    end = _used() + LIMITS.bisect_seconds
    with preserve_torch_state():
        found = _smallest(*operations_of(gm, inputs), compile_part, on_smaller, end)
        given = Copies(inputs, range(len(inputs))).made()
        if found is None:  # operators that compilers take apart in another way than torch does it when they are traced here
            plain = [value.detach() if isinstance(value, torch.Tensor) else value for value in given]
            found = _smallest(runnable(gm), plain, compile_part, on_smaller, end)
        if found is None and any(isinstance(value, torch.Tensor) and value.requires_grad for value in given):
            found = _smallest(runnable(gm), given, compile_part, on_smaller, end)
        return found


def _smallest(
    flat: torch.fx.GraphModule,
    given: list[Any],
    compile_part: Compile,
    on_smaller: Callable[[Part], object],
    end: float,
) -> Part | None:
    """Of the operations of ``flat``, which take ``given``: with gradients, if those require them."""
    nodes = [node for node in flat.graph.nodes if node.op not in ("placeholder", "output")]
    search = _Search(flat, nodes, given, compile_part, on_smaller)
    if not nodes or not search.differs(0, len(nodes)):
        return None
    last = search.first(range(1, len(nodes)), lambda stop: search.differs(0, stop), end, len(nodes))
    # the shortest part is found from its end: the later it begins, the shorter it is
    back = search.first(range(1, last), lambda size: search.differs(last - size, last), end, last)
    return search.few_results(last - back, last, end)


def operations_of(gm: torch.fx.GraphModule, inputs: Sequence[Any]) -> tuple[torch.fx.GraphModule, list[torch.Tensor]]:
    """The ATen operations of ``gm`` and of a backward pass through its results, as a graph of the tensors among ``inputs``,
    and these tensors without history."""
    positions = [i for i, value in enumerate(inputs) if isinstance(value, torch.Tensor)]
    copies = Copies(inputs, positions)
    used_up = any(node.target is torch.autograd.grad for node in gm.graph.nodes)
    leaves = {i for i in positions if inputs[i].requires_grad}

    def run(*tensors: torch.Tensor) -> Any:
        values = list(inputs)
        for position, tensor in zip(positions, tensors, strict=True):
            values[position] = tensor
        results = [value for value in _Placed(gm).run(*values) if isinstance(value, torch.Tensor)]
        wanted = [values[i] for i in positions if i in leaves]
        roots = list(roots_among({str(i): one for i, one in enumerate(results)}).values())
        if used_up:
            with untraced():
                roots = [one for one in roots if is_live(one, wanted)]
        if roots and wanted:
            found = torch.autograd.grad(roots, wanted, [torch.ones_like(one) for one in roots], allow_unused=True)
            results += [gradient for gradient in found if gradient is not None]
        return tuple(one.detach() for one in results)

    made = [copies.made()[i] for i in positions]
    with preserve_node_meta():
        flat = trace_operators(run, made, nullcontext())
    again = copies.made()
    return flat, [again[i].detach() for i in positions]


class _Placed(torch.fx.Interpreter):
    """Leaves the program's lines on the operations that are traced."""

    def __init__(self, gm: torch.fx.GraphModule) -> None:
        super().__init__(gm, garbage_collect_values=False)

    def run_node(self, n: torch.fx.Node) -> Any:
        if (at := place(n)) is not None:
            n.meta["stack_trace"] = f"{at.file}:{at.range.start.line + 1}"
        try:
            return super().run_node(n)
        except RuntimeError:  # a number that is read from a tensor can't be traced
            with untraced():
                result = super().run_node(n)
            if isinstance(result, bool | int | float):
                return result  # the same for these inputs
            raise


def explained(gm: torch.fx.GraphModule, inputs: Sequence[Any]) -> list[float]:
    """The largest difference that rounding explains: of each result of ``gm``, of each of ``inputs``, which it may write,
    and of the gradient of each that requires one."""
    copies = Copies(inputs, range(len(inputs)))
    has_history = any(value.requires_grad for value in inputs)

    def values(noise: Noisy | None) -> list[torch.Tensor | None]:
        given = copies.made(noise)
        results = list(gm(*given) if noise is None else noise.run(*given))
        leaves = [one for one in given if one.requires_grad]
        roots = [one for one in results if isinstance(one, torch.Tensor) and one.requires_grad]
        gradients: Sequence[torch.Tensor | None] = [None] * len(leaves)
        if roots and leaves:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(1)
                starts = [torch.randn_like(one) for one in roots]
            gradients = torch.autograd.grad(roots, leaves, starts, allow_unused=True)
        return [*results, *given, *gradients]

    with nullcontext() if has_history else torch.no_grad(), preserve_torch_state():
        streams = random_streams()
        eager = values(None)
        largest = [0.0] * len(eager)
        for seed in range(LIMITS.noisy_runs):
            restore_streams(streams)
            for i, (one, other) in enumerate(zip(eager, values(Noisy(gm, seed)), strict=True)):
                if one is not None and other is not None and one.numel():
                    largest[i] = max(largest[i], float(elementwise(one, other).max()))
    few = [0.0 if one is None else units(one, LIMITS.units_in_last_place) for one in eager]
    return [LIMITS.noise_factor * by_noise + one for by_noise, one in zip(largest, few, strict=True)]


def _used() -> float:
    """Processor seconds of this process and of those that it has waited for, as C++ compilers."""
    return sum(os.times()[:4])


def computes(node: torch.fx.Node) -> bool:
    """Whether it is an operation, and not one of the results of another, nor a constant."""
    is_call = node.op in ("call_function", "call_method")
    is_result = node.target is operator.getitem and _SELECTS not in node.meta
    return is_call and not is_result and not _is_constant(node)


def _is_constant(node: torch.fx.Node) -> bool:
    """Whether it makes a tensor of numbers that the trace has."""
    if node.target in ("reshape", torch.ops.aten.lift_fresh_copy.default):
        return all(map(_is_constant, node.all_input_nodes))
    return node.target is torch.tensor


class _Search:
    def __init__(
        self,
        flat: torch.fx.GraphModule,
        nodes: list[torch.fx.Node],
        inputs: list[Any],
        compile_part: Compile,
        on_smaller: Callable[[Part], object],
    ) -> None:
        self._flat, self._nodes, self._inputs, self._compile = flat, nodes, inputs, compile_part
        self._on_smaller, self._smallest = on_smaller, len(nodes) + 1
        self._has_history = any(isinstance(value, torch.Tensor) and value.requires_grad for value in inputs)
        self._known: dict[tuple[int, int], Difference | None] = {}

    @staticmethod
    def first(sizes: range, holds: Callable[[int], bool], end: float, largest: int) -> int:
        """The smallest of ``sizes`` for which it ``holds``, if it does for all larger ones; ``largest`` if for none. When
        the time is up, the smallest that is known."""
        low, high = sizes.start, largest
        while low < high and _used() < end:
            middle = (low + high) // 2
            if holds(middle):
                high = middle
            else:
                low = middle + 1
        return high

    def differs(self, start: int, stop: int) -> bool:
        """Whether compiled code of these operations differs. What can't be run alone, or compiled, does not."""
        return self._difference(start, stop) is not None

    def _difference(self, start: int, stop: int) -> Difference | None:
        if (start, stop) not in self._known:
            self._known[start, stop] = self._compared(start, stop, self._results(start, stop))[1]
        return self._known[start, stop]

    def _compared(
        self, start: int, stop: int, results: Sequence[torch.fx.Node], without: frozenset[torch.fx.Node] = frozenset()
    ) -> tuple[Part | None, Difference | None]:
        with preserve_torch_state():  # the operations before may change grad mode
            try:
                part = self._part(start, stop, results, without)
                code = self._compile(part.graph, part.inputs)
            except Exception:  # of a part that is none by itself, or that the compiler refuses
                return None, None
            found = check(part.graph, code, part.inputs, part.written, same_random=True).difference
        part = replace(part, difference=found)
        if found is not None and (count := len(part.operations)) < self._smallest:
            self._smallest = count
            self._on_smaller(part)
        return part, found

    def few_results(self, start: int, stop: int, end: float) -> Part:
        """The part, which differs, without those results and operations in place, and what they alone need, that it differs
        without, too."""
        self._values(stop)
        kept = self._results(start, stop)
        with preserve_torch_state():
            found = replace(self._part(start, stop, kept), difference=self._difference(start, stop))
        size = len(kept) // 2 if len(found.operations) > 1 else 0
        while size:
            for at in reversed(range(0, len(kept), size)):
                fewer = kept[:at] + kept[at + size :]
                part, difference = self._compared(start, stop, fewer) if fewer and _used() < end else (None, None)
                if part is not None and difference is not None:
                    found, kept = part, fewer
            size //= 2
        return self._few_writes(start, stop, found, kept, end) if len(found.operations) > 1 else found

    def _few_writes(self, start: int, stop: int, found: Part, kept: Sequence[torch.fx.Node], end: float) -> Part:
        by_name = {node.name: node for node in self._nodes[start:stop] if node not in kept}
        without: frozenset[torch.fx.Node] = frozenset()
        while _used() < end:
            idle = [by_name[n.name] for n in found.graph.graph.nodes if n.name in by_name and not n.users and computes(n)]
            groups = [idle, *([one] for one in idle)] if idle[1:] else [idle]
            for group in groups if idle else ():
                part, difference = self._compared(start, stop, kept, without | set(group))
                if part is not None and difference is not None:
                    found, without = part, without | set(group)
                    break
                if not group[1:]:
                    del by_name[group[0].name]
            else:
                return found
        return found

    def _results(self, start: int, stop: int) -> list[torch.fx.Node]:
        """What these operations give to later ones, and what the last of them gives."""
        inside = self._nodes[start:stop]
        return [n for n in inside if n is inside[-1] or any(user not in inside for user in n.users)]

    def _part(
        self, start: int, stop: int, results: Sequence[torch.fx.Node], without: frozenset[torch.fx.Node] = frozenset()
    ) -> Part:
        """``without``: operations that are left out, whose results nothing takes. Raises ValueError if it would take several
        values as one."""
        inside = [node for node in self._nodes[start:stop] if node not in without]
        graph = torch.fx.Graph()
        values = self._values(start)
        taken = list(dict.fromkeys(n for node in inside for n in node.all_input_nodes if n not in set(inside)))
        copies: dict[torch.fx.Node, Any] = {}
        for node in taken:
            is_number = isinstance(values[node], bool | int | float)  # the same for these inputs
            copies[node] = values[node] if is_number else graph.placeholder(node.name)
        for node in inside:
            copies[node] = graph.node_copy(node, lambda one: copies[one])
        graph.output(tuple(copies[node] for node in results))
        if without or len(results) < len(self._results(start, stop)):
            graph.eliminate_dead_code()
            for unused in [node for node in graph.find_nodes(op="placeholder") if not node.users]:
                graph.erase_node(unused)
        left = set(graph.nodes)
        inputs = tuple(_as_input(values[node]) for node in taken if copies[node] in left)
        if not all(isinstance(value, torch.Tensor) for value in inputs):
            raise ValueError("a part takes tensors only")
        gm = torch.fx.GraphModule(self._flat, graph)
        lines = dict.fromkeys(line for node in graph.nodes if (line := _line(node)))
        memory = [storage_key(value) for value in inputs]
        shared = tuple(i for i, key in enumerate(memory) if memory.count(key) > 1)
        return Part(gm, inputs, shared, sum(map(computes, self._nodes)), tuple(lines))

    def _values(self, start: int) -> dict[torch.fx.Node, Any]:
        """What the operations before ``start`` have left, in eager mode."""
        values: dict[torch.fx.Node, Any] = {}
        inputs = Copies(self._inputs, range(len(self._inputs))).made()
        values.update(zip(self._flat.graph.find_nodes(op="placeholder"), inputs, strict=True))
        run = torch.fx.Interpreter(self._flat, garbage_collect_values=False)
        run.env = values
        with nullcontext() if self._has_history else torch.no_grad():
            for node in self._nodes[:start]:
                values[node] = run.run_node(node)
                if node.target is operator.getitem and isinstance(values[node.all_input_nodes[0]], torch.Tensor):
                    node.meta[_SELECTS] = True
        return values


def _as_input(value: Any) -> Any:
    """Without its history."""
    return value.detach().requires_grad_(value.requires_grad) if isinstance(value, torch.Tensor) else value


def _line(node: torch.fx.Node) -> str:
    """The program's, ``file:line``; empty if not known."""
    if traced := node.meta.get("stack_trace"):
        return str(traced)
    return "" if (at := place(node)) is None else f"{at.file}:{at.range.start.line + 1}"
