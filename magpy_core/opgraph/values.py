"""Values: the tensors that an operator graph knows, by identity, each with its node. Key type: Values."""

from __future__ import annotations

import operator
import sys
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any

import torch
import torch.fx

from magpy_core._compat.torch.tensor_guards import is_view, no_torch_function, tensor_users, tensors_in_storage
from magpy_core.findings import Unsupported
from magpy_core.refgraph import kinds
from magpy_core.refgraph.kinds import is_a

_PARTS = (torch.Tensor, tuple, list, dict)


def tensors_in(*trees: Any) -> list[torch.Tensor]:
    """The tensors in nested lists, tuples and dicts."""
    out: list[torch.Tensor] = []
    stack: list[Any] = list(trees)
    while stack:
        v = stack.pop()
        if is_a(v, torch.Tensor):
            out.append(v)
        elif is_a(v, (list, tuple)):
            stack.extend(v)
        elif is_a(v, dict):
            stack.extend(v.values())
    return out


class Values:
    """The tensors of one graph. They are kept alive so that their ids are not reused."""

    def __init__(self, graph: torch.fx.Graph) -> None:
        self.graph = graph
        self.reshaped_leaf = False
        """Whether ``.data`` of a tensor that requires a gradient has just been replaced by one of another shape."""
        self._known: dict[int, tuple[torch.Tensor, torch.fx.Node]] = {}
        self._ids: dict[torch.fx.Node, int] = {}  # ids: another reference would count as the program's
        self._shaped_by_data: set[int] = set()
        self._containers: list[Any] = []
        self._unsearched = 0  # since the last search for unreachable values

    def __contains__(self, tensor: Any) -> bool:
        return id(tensor) in self._known

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.fx.Node]]:
        return iter(self._known.values())

    def node(self, tensor: Any) -> torch.fx.Node | None:
        found = self._known.get(id(tensor))
        return None if found is None else found[1]

    def tensor(self, node: torch.fx.Node) -> torch.Tensor | None:
        found = self._known.get(self._ids.get(node, 0))
        return found[0] if found is not None and found[1] is node else None  # or another tensor has its id now

    def add(self, tensor: torch.Tensor, node: torch.fx.Node) -> None:
        self._known[id(tensor)] = (tensor, node)
        self._ids[node] = id(tensor)

    def mark_shaped_by_data(self, tensor: torch.Tensor) -> None:
        self._shaped_by_data.add(id(tensor))

    def fix_sizes(self, tensor: torch.Tensor) -> None:
        """From now on, the sizes of ``tensor`` are specialized."""
        self._shaped_by_data.discard(id(tensor))

    def is_shaped_by_data(self, tensors: Iterable[Any]) -> bool:
        """Whether the shape of any of these follows from data."""
        return any(id(t) in self._shaped_by_data for t in tensors)

    def bind(self, result: Any, node: torch.fx.Node, outside: Container[int], from_data: bool = False) -> None:
        """Bind ``result`` to ``node``, which computes it. ``outside``: ids of tensors that keep their node. Raises
        Unsupported for a result that can't be part of a graph."""
        if is_a(result, torch.Tensor):
            if kinds.kind_of(result) == kinds.TENSOR and type(result) not in (torch.Tensor, torch.nn.Parameter):
                text = f"An operation returns a {type(result).__name__}, a tensor subclass."
                raise Unsupported("MP106", text, hint="Pass it a plain tensor: `x.as_subclass(torch.Tensor)`.")
            if id(result) not in outside:  # an input that an operation returns keeps its node
                self.add(result, node)
            if from_data:
                self.mark_shaped_by_data(result)
        elif is_a(result, (tuple, list)):
            if result and not any(is_a(r, _PARTS) for r in result):
                raise Unsupported("MP102", "An operation returns Python values that depend on tensor data.")
            self._bind_parts(enumerate(result), node, outside, from_data)
            self._containers.append(result)
        elif type(result) is dict and all(is_a(r, _PARTS) for r in result.values()):
            self._bind_parts(result.items(), node, outside, from_data)
        elif not (
            result is None
            or is_a(result, (torch.dtype, torch.device, torch.layout))
            or (is_a(result, (bool, int, float, complex)) and not node.all_input_nodes)
        ):
            text = f"An operation returns a {type(result).__name__}: that can't be part of an operator graph."
            raise Unsupported("MP106", text, hint="Call it outside the region, and pass its result in.")

    def _bind_parts(
        self, parts: Iterable[tuple[Any, Any]], node: torch.fx.Node, outside: Container[int], from_data: bool
    ) -> None:
        for key, part in parts:
            if is_a(part, _PARTS):
                self.bind(part, self.graph.call_function(operator.getitem, (node, key)), outside, from_data)

    def note_result(self, result: Any) -> None:
        self._unsearched += _bytes_of(result)

    def release_unreachable(self, outside: Container[int]) -> None:
        """Free the memory of values that the program no longer refers to, after every `_EVERY` bytes of results: eager would
        have freed it, and recording must not need more memory than eager. The storage of a tensor that only this table
        refers to is emptied; the tensor stays, so that its id is not reused. ``outside``: ids of tensors to keep."""
        if self._unsearched <= _EVERY and not self.reshaped_leaf:
            return
        unseen = {key for key, count in _references(self._known).items() if count == _OURS and key not in outside}
        in_storage: dict[int, list[torch.Tensor]] = {}
        for key, (tensor, _) in self._known.items():
            if self.reshaped_leaf and key in unseen and tensor.grad_fn is not None and not is_view(tensor):
                with no_torch_function():
                    tensor.detach_()  # autograd's graph keeps the old shape of a leaf
            if type(tensor) is torch.Tensor and tensor.layout is torch.strided:
                in_storage.setdefault(tensor.untyped_storage()._cdata, []).append(tensor)
        self._unsearched, self.reshaped_leaf = 0, False
        for tensors in in_storage.values():
            freed = all(id(t) in unseen and tensor_users(t) == 1 for t in tensors)
            if freed and tensors_in_storage(tensors[0]) == len(tensors):
                memory = tensors[0].untyped_storage()
                if memory.nbytes() and memory.resizable():
                    memory.resize_(0)

    def clear(self) -> None:
        self._known.clear()
        self._ids.clear()
        self._containers.clear()


#: Bytes of results before the next search for unreachable values.
_EVERY = 32 * 2**20


def _references(values: Mapping[int, tuple[torch.Tensor, Any]]) -> dict[int, int]:
    return {key: sys.getrefcount(tensor) for key, (tensor, _) in values.items()}


_OURS = _references({0: (torch.empty(0), None)})[0]  # the count for a tensor that only such a table refers to


def _bytes_of(result: Any) -> int:
    """Bytes of an operation's result. Views count too: at worst, the next search starts early."""
    if type(result) is torch.Tensor:
        return result.nbytes if result.layout is torch.strided else 0
    return sum(map(_bytes_of, result)) if type(result) in (tuple, list) else 0
