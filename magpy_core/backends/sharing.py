"""What the operations of a graph write and view, and where compilers would separate memory that eager mode shares.

AOTAutograd recreates outputs that are views of an input, outside the compiled graph. It does not do so for several views
that one operation creates of an input that is written in the graph and requires a gradient, and it gets their strides wrong
if the input shares its storage with another one. It runs the writes of a checkpointed part only once: its backward graph
recomputes values, but does not repeat writes.

Eager saves the inputs themselves for the backward pass, which raises if one was written since then, by this call or by the
next one, and uses the new values if the write doesn't increment the version (running statistics, `.data`). A compiled graph
saves the old values. Inputs that are results of earlier operations under autograd are not checked: they are new at each
call.

Key functions: `may_overlap`, `split_views`, `repeated_write`, `saved_and_written`, `root`, `own_memory`.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Iterator, Sequence
from typing import Any

import torch
import torch.fx

from magpy_core._compat.torch.operators import several_results, views
from magpy_core._compat.torch.tensor_guards import storage_key
from magpy_core._compat.torch.torch_state import SET_GRAD
from magpy_core.opgraph.functions import IN_PLACE, operator_name, running_statistics, silently_written
from magpy_core.opgraph.segments import CHECKPOINT


def may_overlap(tensors: Sequence[torch.Tensor]) -> bool:
    """Whether two of these fakes may share an element: they are in one storage, and their ranges overlap."""
    ranges: dict[int, list[tuple[Any, Any]]] = {}
    for tensor in {id(t): t for t in tensors}.values():
        if tensor.numel() == 0:
            continue
        start = tensor.storage_offset()
        end = start + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
        known = ranges.setdefault(tensor.untyped_storage()._cdata, [])
        if any(start <= other_end and other_start <= end for other_start, other_end in known):
            return True
        known.append((start, end))
    return False


def changed(node: torch.fx.Node) -> list[torch.fx.Node]:
    """What an operation writes according to its name or its arguments; its result is the first of these."""
    name = operator_name(node)
    in_place = f"__{name}__" in IN_PLACE or name in ("setitem", "set")  # the latter: `x.real = y`
    if not (in_place or "out" in node.kwargs or (name.endswith("_") and not name.endswith("__"))):
        # a function of `torch.nn.functional` that is called with ``inplace=True``, by name or by position
        at = _inplace_position(node.target) if node.op == "call_function" else None
        if node.kwargs.get("inplace", at is not None and len(node.args) > at and node.args[at]) is not True:
            return []
    given = node.kwargs.get("out", node.args[0] if node.args else node.all_input_nodes[:1])
    return [n for n in (given if isinstance(given, list | tuple) else [given]) if isinstance(n, torch.fx.Node)]


def written(node: torch.fx.Node) -> list[torch.fx.Node]:
    """What an operation writes, running statistics included."""
    return [*changed(node), *silently_written(node.target, node.args, node.kwargs)]


@functools.cache
def _inplace_position(target: Any) -> int | None:
    try:
        names = list(inspect.signature(target).parameters)
    except (TypeError, ValueError):  # built-in functions have names that end with "_" instead
        return None
    return names.index("inplace") if "inplace" in names else None


def viewed(node: torch.fx.Node) -> Iterator[torch.fx.Node]:
    """The chain of nodes that a node is a view of, or the in-place result of."""
    while given := changed(node) or (node.all_input_nodes if _stem(node) in views() else []):
        node = given[0]
        yield node


def _stem(node: torch.fx.Node) -> str:
    return operator_name(node).strip("_")


def split_views(graph: torch.fx.Graph, inputs: dict[torch.fx.Node, Any]) -> str | None:
    """Why an output would not share an input's memory as in eager mode; None if all outputs would."""
    if not any(changed(node) for node in graph.nodes):
        return None
    tensors = [t for t in inputs.values() if isinstance(t, torch.Tensor)]
    storages = [t.untyped_storage()._cdata for t in {id(t): t for t in tensors}.values()]
    learning = any(t.requires_grad for t in tensors)
    for output in graph.output_node().all_input_nodes:
        chain = [output, *viewed(output)]
        given = inputs.get(chain[-1])
        if not isinstance(given, torch.Tensor) or len(chain) == 1:
            continue
        if learning and any(_stem(n) in views(many=True) for n in chain[:-1]):
            return "The graph returns several views of an outside tensor that it writes."
        if storages.count(given.untyped_storage()._cdata) > 1:
            return "The graph returns a view of an outside tensor and writes another tensor that shares its memory."
    return None


def repeated_write(graph: torch.fx.Graph) -> str | None:
    """Why a checkpointed part would not write to a tensor from outside it as in eager mode; None if none does."""
    for node in graph.nodes:
        number = node.meta.get(CHECKPOINT)
        for target in written(node) if number is not None else ():
            if any(n.meta.get(CHECKPOINT) != number for n in (target, *viewed(target))):
                what = operator_name(node)
                return f"`{what}` is checkpointed and writes an outside tensor; the backward pass repeats the write."
    return None


def saved_and_written(gm: torch.fx.GraphModule, fakes: Sequence[Any], mode: Any) -> str | None:
    """The name of an input that ``gm`` writes and whose memory autograd saves for the backward pass; None if there is none.

    A run on fakes with hooks for saved tensors finds what autograd saves; it is skipped if the graph only writes such
    inputs, or if nothing in it runs with gradients enabled, as in an optimizer. Raises whatever that run raises."""
    placeholders = [n for n in gm.graph.nodes if n.op == "placeholder"]
    lasting = {n for n, fake in zip(placeholders, fakes, strict=True) if isinstance(fake, torch.Tensor) and fake.is_leaf}
    doubtful = lasting & written_inputs(gm.graph) & _used(gm.graph)
    if not doubtful or not _enables_gradients(gm.graph):
        return None
    with mode:
        values = [copied(fake) for fake in fakes]
        memory = {storage_key(v): n.name for n, v in zip(placeholders, values, strict=True) if n in doubtful}
        run = _Run(gm)
        with torch.autograd.graph.saved_tensors_hooks(run.pack, lambda saved: saved):
            run.run(*values)
    return next((memory[key] for key in run.saved if key in memory), None)


def _enables_gradients(graph: torch.fx.Graph) -> bool:
    """Whether an operation runs with gradients enabled, if they are when the graph begins."""
    enabled = True
    for node in graph.nodes:
        if node.target is SET_GRAD:
            enabled = bool(node.args[0])
        elif enabled and node.op in ("call_function", "call_method"):
            return True
    return False


class _Run(torch.fx.Interpreter):
    """Runs a graph and keeps the storage keys of what autograd saves, except in normalizations that write it: their backward
    pass in training mode uses the statistics of the batch."""

    _normalizes = False

    def __init__(self, gm: torch.fx.GraphModule) -> None:
        super().__init__(gm, garbage_collect_values=False)
        self.saved: set[Any] = set()

    def run_node(self, n: torch.fx.Node) -> Any:
        self._normalizes = n.op == "call_function" and bool(running_statistics(n.target, n.args, n.kwargs))
        return super().run_node(n)

    def pack(self, tensor: torch.Tensor) -> torch.Tensor:
        if not self._normalizes:
            self.saved.add(storage_key(tensor))
        return tensor


def copied(fake: Any) -> Any:
    """A fake like ``fake`` in new memory, which the run may write."""
    if not isinstance(fake, torch.Tensor) or fake.layout is not torch.strided:
        return fake
    copy = torch.empty_strided(fake.shape, fake.stride(), dtype=fake.dtype, device=fake.device)
    if not fake.requires_grad:
        return copy
    copy.requires_grad_()
    return copy if fake.is_leaf else copy.view_as(copy)


def written_inputs(graph: torch.fx.Graph) -> set[torch.fx.Node]:
    """The inputs that operations write, directly or through views."""
    return {target for node in graph.nodes for target in map(root, written(node)) if target.op == "placeholder"}


def written_positions(graph: torch.fx.Graph) -> list[int]:
    """Which inputs operations write."""
    changed = written_inputs(graph)
    return [i for i, node in enumerate(graph.find_nodes(op="placeholder")) if node in changed]


def _used(graph: torch.fx.Graph) -> set[torch.fx.Node]:
    """The inputs whose values operations read; creating a view or writing to it is not a read."""
    found = set()
    for node in graph.nodes:
        if node.op in ("call_function", "call_method") and (changed(node) or next(viewed(node), None) is None):
            targets = set(written(node))
            found |= {root(n) for n in node.all_input_nodes if n not in targets}
    return found


def own_memory(node: torch.fx.Node) -> tuple[torch.fx.Node, Any]:
    """The operation that made the memory of a value, and which of its results it was."""
    for one in (node, *viewed(node)):
        made_by = one.args[0] if one.target is operator.getitem else None
        if isinstance(made_by, torch.fx.Node) and _stem(made_by) in several_results():
            return made_by, one.args[1]
    return root(node), None


def root(node: torch.fx.Node) -> torch.fx.Node:
    """The node whose memory this one has, as far as operations say."""
    return [node, *viewed(node)][-1]
