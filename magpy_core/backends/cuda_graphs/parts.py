"""Separates what a graph computes on the host from what it computes on a device, so that the device's part takes tensors
of the device only and can be replayed as a CUDA graph.

A learning rate and step counts are on the host, and so is what optimizers compute of them. The host's part computes it
first; the numbers that the device needs are sent in one copy for each dtype. What the host's part writes (the counts) is
written when the device's part has been launched: if that raises, the tensors of the host are as before.

Key types: Part, Separated, NotSeparable. Key functions: separate, joined.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.fx
from torch.utils._pytree import tree_leaves

from magpy_core._compat.torch.operator_schemas import (
    can_repeat,
    is_kernels_alone,
    is_mutable,
    is_random,
    memory,
    unrecordable,
    written_by,
    written_memory,
)
from magpy_core._compat.torch.surroundings import in_cuda_graph
from magpy_core.backends.calling import Boxed

_Node = torch.fx.Node


class NotSeparable(Exception):
    """A graph whose part on the device can't be called, or recorded, alone; the message says why."""


@dataclass(frozen=True)
class Part:
    """``inputs``: which of the whole graph's inputs it takes, before others of its own."""

    graph: torch.fx.GraphModule
    fakes: list[Any]
    inputs: list[int]


@dataclass(frozen=True)
class Separated:
    """``numbers`` computes what the ``device``'s part takes from the host, and writes nothing; ``counts`` writes what the
    host writes, and returns the results that are there; None: there is nothing of the kind. The first ``sent`` results of
    ``numbers`` are copied to ``place``; those after them are there already. ``outputs``: for each result of the whole
    graph, whose it is and its position there. ``written``: which inputs of the device's part it writes."""

    numbers: Part | None
    device: Part
    counts: Part | None
    sent: int
    outputs: list[tuple[str, Any]]
    written: frozenset[int]
    place: torch.device


def separate(gm: torch.fx.GraphModule, fakes: Sequence[Any], mode: Any, written: Collection[int]) -> Separated | None:
    """The parts of a graph of ATen operations without autograd; None if nothing of it is on a CUDA device. ``written``:
    inputs that are written, also if schemas don't say so. Raises NotSeparable."""
    places = {fake.device for fake in fakes if isinstance(fake, torch.Tensor) and fake.device.type == "cuda"}
    if not places:
        return None
    if len(places) > 1:
        raise NotSeparable("it uses several devices")
    if not all(isinstance(fake, torch.Tensor) for fake in fakes):
        raise NotSeparable("its sizes vary")
    if any(node.op in ("get_attr", "call_module") for node in gm.graph.nodes):
        raise NotSeparable("it has a graph inside")
    for node in gm.graph.nodes:
        if node.op in ("call_function", "call_method") and not is_kernels_alone(node):
            raise NotSeparable(f"`{node.target}` may do more than launch kernels")
    values = _Values(gm)
    with mode:
        values.run(*fakes)
    if any(isinstance(leaf, torch.SymInt | torch.SymFloat | torch.SymBool) for leaf in _leaves(values.of)):
        raise NotSeparable("its sizes vary")
    if name := unrecordable(gm, values.of):
        raise NotSeparable(f"`{name}` waits for the device")
    return _Separation(gm, fakes, values.of, mode, places.pop()).run(written)


class _Values(torch.fx.Interpreter):
    """``of``: the fake value of each node."""

    def __init__(self, gm: torch.fx.GraphModule) -> None:
        super().__init__(gm, garbage_collect_values=False)
        self.of: dict[_Node, Any] = {}

    def run_node(self, n: _Node) -> Any:
        self.of[n] = super().run_node(n)
        return self.of[n]


def _leaves(values: dict[_Node, Any]) -> Iterator[Any]:
    """Everything in the values, with the sizes and strides of tensors."""
    for leaf in tree_leaves(list(values.values())):
        yield leaf
        if isinstance(leaf, torch.Tensor):
            yield from (*leaf.shape, *leaf.stride())


def _tensors(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def _on_host(value: Any) -> bool:
    return any(tensor.device.type == "cpu" for tensor in _tensors(value))


def _storage(fake: torch.Tensor) -> int:
    key: int = fake.untyped_storage()._cdata
    return key


@dataclass
class _Copy:
    """A part that is being made. ``of``: its node for each node of the whole graph that it knows."""

    graph: torch.fx.Graph = field(default_factory=torch.fx.Graph)
    of: dict[_Node, _Node] = field(default_factory=dict)
    fakes: list[Any] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)

    def take(self, name: str, fake: Any) -> _Node:
        self.fakes.append(fake)
        return self.graph.placeholder(name)

    def copy(self, node: _Node) -> None:
        self.of[node] = self.graph.node_copy(node, self.of.__getitem__)

    def part(self, results: Sequence[_Node]) -> Part:
        self.graph.output(tuple(results))
        self.graph.lint()
        return Part(torch.fx.GraphModule({}, self.graph), self.fakes, self.inputs)


class _Separation:
    """``gm`` and the ``values`` of its nodes are not changed."""

    def __init__(
        self, gm: torch.fx.GraphModule, fakes: Sequence[Any], values: dict[_Node, Any], mode: Any, place: torch.device
    ) -> None:
        self._fakes, self._values, self._mode, self._place = fakes, values, mode, place
        self._inputs = {node: i for i, node in enumerate(gm.graph.find_nodes(op="placeholder"))}
        self._operations = [node for node in gm.graph.nodes if node.op not in ("placeholder", "output")]
        self._host = {node for node in self._operations if self._is_of_host(node)}
        self._written = written_memory(gm.graph)
        (results,) = gm.graph.output_node().args
        self._results = list(results) if isinstance(results, list | tuple) else [results]

    def _is_of_host(self, node: _Node) -> bool:
        """An operation on the device may take a number of the host; anything larger has to be copied by the host."""
        given = [tensor for one in node.all_input_nodes for tensor in _tensors(self._values[one])]
        there = [tensor for tensor in given if tensor.device.type == "cpu"]
        if not _tensors(self._values[node]):
            return len(there) == len(given) > 0
        return _on_host(self._values[node]) or any(tensor.dim() > 0 for tensor in there)

    def run(self, written: Collection[int]) -> Separated:
        crossing = self._crossing()
        silent = set(written) - {i for node, i in self._inputs.items() if node in self._written}
        if any(_on_host(self._fakes[i]) for i in silent):
            raise NotSeparable("it writes a tensor on the host unseen")
        places = Counter(_storage(self._fakes[i]) for i in self._inputs.values())
        if any(places[_storage(self._fakes[self._inputs[n]])] > 1 for n in self._written if self._is_input_of_host(n)):
            raise NotSeparable("it writes a tensor on the host that shares memory with another")
        if any(node in self._host and not _on_host(self._values[node]) for node in self._results if isinstance(node, _Node)):
            raise NotSeparable("it returns a tensor that the host copies to the device")
        self._check_host(crossing)
        device = self._part_of(on_host=False)
        numbers, sent = self._numbers(crossing, device)
        for node in self._operations:
            if node not in self._host:
                device.copy(node)
        of_device, of_host, outputs = list[_Node](), list[_Node](), list[tuple[str, Any]]()
        for result in map(_itself, self._results):
            if not isinstance(result, _Node):
                outputs.append(("constant", result))
            elif result in self._inputs:
                outputs.append(("input", self._inputs[result]))
            elif result in self._host:
                outputs.append(("host", len(of_host)))
                of_host.append(result)
            else:
                outputs.append(("device", len(of_device)))
                of_device.append(device.of[result])
        part = device.part(of_device)
        changed = written_memory(part.graph.graph)
        named = {i for i, n in enumerate(part.graph.graph.find_nodes(op="placeholder")) if n in changed}
        named |= {i for i, position in enumerate(part.inputs) if position in written}
        return Separated(numbers, part, self._counts(of_host), sent, outputs, frozenset(named), self._place)

    def _check_host(self, crossing: Sequence[_Node]) -> None:
        """The host's part must need nothing of the device, may run twice, and sends nothing that is written later."""
        for node in self._host:
            if any(one not in self._host and not self._is_input_of_host(one) for one in node.all_input_nodes):
                raise NotSeparable("something on the host needs a result of the device")
            if is_random(node) or not (can_repeat(node) or is_mutable(node) or _makes_constant(node)):
                raise NotSeparable(f"`{node.target}` runs on the host")
        writes = [written_by(node) for node in self._operations]
        for node in crossing:
            first = min(i for i, one in enumerate(self._operations) if one not in self._host and node in one.all_input_nodes)
            if memory(node) & set().union(*writes[first:]):
                raise NotSeparable("it writes a tensor on the host that the device has read")

    def _is_input_of_host(self, node: _Node) -> bool:
        return node in self._inputs and _on_host(self._fakes[self._inputs[node]])

    def _crossing(self) -> list[_Node]:
        """What the device takes from the host, in order."""
        taken = {one for node in self._operations if node not in self._host for one in node.all_input_nodes}
        return [node for node in self._values if node in taken and (node in self._host or self._is_input_of_host(node))]

    def _part_of(self, *, on_host: bool) -> _Copy:
        """A part with the inputs that are there."""
        copy = _Copy()
        for node, i in self._inputs.items():
            if _on_host(self._fakes[i]) is on_host:
                copy.of[node] = copy.take(node.name, self._fakes[i])
                copy.inputs.append(i)
        return copy

    def _numbers(self, crossing: Sequence[_Node], device: _Copy) -> tuple[Part | None, int]:
        """The part that computes what crosses, and how many results have to be sent; ``device`` gets inputs for them."""
        if not crossing:
            return None, 0
        part = self._part_of(on_host=True)
        for node in self._written & part.of.keys():
            part.of[node] = part.graph.call_function(torch.ops.aten.clone.default, (part.of[node],))
        for node in self._operations:
            if node in self._host:
                part.copy(node)
        groups: dict[torch.dtype, list[_Node]] = {}
        there = [node for node in crossing if not _on_host(self._values[node])]
        for node in crossing:
            if node not in there:
                groups.setdefault(self._values[node].dtype, []).append(node)
        results, taken = list[_Node](), list[_Node]()
        for dtype, nodes in groups.items():
            results.append(part.graph.call_function(torch.ops.aten.stack.default, ([part.of[node] for node in nodes],)))
            with self._mode:
                fake = torch.empty(len(nodes), dtype=dtype, device=self._place)
            taken.append(device.take(f"sent_{str(dtype).removeprefix('torch.')}", fake))
        for node in there:
            results.append(part.of[node])
            device.of[node] = device.take(node.name, self._values[node])
        for packed, nodes in zip(taken, groups.values(), strict=True):
            for i, node in enumerate(nodes):
                device.of[node] = device.graph.call_function(torch.ops.aten.select.int, (packed, 0, i))
        return part.part(results), len(groups)

    def _counts(self, results: Sequence[_Node]) -> Part | None:
        """The part that writes what the host writes."""
        part = self._part_of(on_host=True)
        if not results and not self._written & part.of.keys():
            return None
        for node in self._operations:
            if node in self._host:
                part.copy(node)
        return part.part([part.of[node] for node in results])


def _itself(value: Any) -> Any:
    """The tensor that operations in place return: the one that they were given."""
    while isinstance(value, _Node) and is_mutable(value) and "out" not in value.kwargs:
        schema = value.target._schema  # type: ignore[union-attr]
        first = schema.arguments[0].alias_info
        if len(schema.returns) != 1 or first is None or not first.is_write or not isinstance(value.args[0], _Node):
            break
        value = value.args[0]
    return value


def _makes_constant(node: _Node) -> bool:
    """``torch.tensor([1.0]).reshape(())``, which a trace writes for a small constant."""
    return node.target is torch.tensor or (node.op == "call_method" and node.target == "reshape")


def joined(parts: Separated, numbers: Boxed | None, device: Boxed, counts: Boxed | None) -> Boxed:
    """A function of the whole graph's inputs that calls the compiled parts."""
    of_numbers = parts.numbers.inputs if parts.numbers is not None else []
    of_counts = parts.counts.inputs if parts.counts is not None else []
    returned = [i for where, i in parts.outputs if where == "input"]
    of_device, place, sent = parts.device.inputs, parts.place, parts.sent
    is_direct = parts.outputs == [("device", i) for i in range(len(parts.outputs))]

    def call(inputs: list[Any]) -> Sequence[Any]:
        given = [inputs[i] for i in of_device]
        if numbers is not None:
            results = numbers([inputs[i] for i in of_numbers])
            send = _by_value if in_cuda_graph() else _send
            given += [send(result, place) for result in results[:sent]]
            given += results[sent:]
        own = {i: inputs[i] for i in returned}
        on_host = [inputs[i] for i in of_counts]
        inputs.clear()
        results = device(given)
        found = counts(on_host) if counts is not None else ()
        return results if is_direct else _in_order(parts.outputs, {"device": results, "host": found, "input": own})

    return call


def _send(numbers: torch.Tensor, place: torch.device) -> torch.Tensor:
    return numbers.to(place, non_blocking=True)


def _by_value(numbers: torch.Tensor, place: torch.device) -> torch.Tensor:
    """As arguments of kernels. A program that records a CUDA graph can't copy from the host, and eager kernels keep the
    numbers of the recorded call, too."""
    sent = torch.empty_like(numbers, device=place)
    for i, number in enumerate(numbers.tolist()):
        sent[i].fill_(number)
    return sent


def _in_order(outputs: Sequence[tuple[str, Any]], of: dict[str, Any]) -> list[Any]:
    return [what if where == "constant" else of[where][what] for where, what in outputs]
