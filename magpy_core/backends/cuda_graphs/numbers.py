"""Computes single numbers on the host, all of a kind at once, by operators that need no compiler.

An optimizer computes the same few numbers of the step count of every parameter. Here, operations of one kind on arguments of
one kind become one operation on a vector: a step makes ten, however many parameters there are. A C++ compiler would take
seconds, and longer the first time. Key function: vectorized.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.fx

from magpy_core._compat.torch.condition_op import is_test
from magpy_core._compat.torch.operator_schemas import is_pointwise
from magpy_core._compat.torch.operators_trace import trace_without_writes
from magpy_core.opgraph.functions import operator_name

_SAME = frozenset({"detach", "alias", "clone", "hoist", "lift_fresh_copy"})
_LISTS = "_foreach_"
#: The variant for single tensors, by the one for lists.
_VARIANTS = {"Tensor": "Tensor", "List": "Tensor", "Scalar": "Scalar", "ScalarList": "Scalar", "default": "default"}


class _Unknown(Exception):
    """Something that is no operation on single numbers."""


@dataclass(eq=False)
class _Number:
    """``of``: the numbers that ``key`` (the operation with its constants, in which None stands for one of these) is about;
    numbers of one ``kind`` are computed together, at their ``place`` in the vector."""

    kind: _Kind
    of: tuple[_Number, ...]
    place: int


@dataclass(eq=False)
class _Kind:
    """``broadcasts``: an argument that is the same for all members need not be repeated."""

    make: Callable[[torch.fx.Graph, list[torch.fx.Node]], torch.fx.Node]
    broadcasts: bool = True
    members: list[_Number] = field(default_factory=list)
    vector: torch.fx.Node | None = None


def _name(node: torch.fx.Node) -> str:
    """Of the operator, without its overload."""
    return operator_name(node).partition(".")[0]


def _anything(value: Any) -> Any:
    """An argument of a node, whose type says too little."""
    return value


def vectorized(gm: torch.fx.GraphModule, fakes: Sequence[Any], mode: Any) -> torch.fx.GraphModule | None:
    """A graph with the results of ``gm``, whose inputs are single numbers and whose results are vectors of these; it writes
    nothing. None if ``gm`` has anything else."""
    if any(fake.dim() or fake.device.type != "cpu" for fake in fakes):
        return None
    traced = trace_without_writes(gm, fakes, mode)
    traced.graph.eliminate_dead_code(lambda node: node.op in ("placeholder", "output"))
    try:
        found = _Vectors(traced, fakes).run()
    except _Unknown:
        return None
    return found if _same(gm, found, fakes, mode) else None


def _same(gm: torch.fx.GraphModule, found: torch.fx.GraphModule, fakes: Sequence[Any], mode: Any) -> bool:
    """Whether both have results of the same types and sizes."""
    with mode:
        wanted = gm(*(fake.clone() for fake in fakes))
        try:
            results = found(*fakes)
        except Exception:  # an operation that takes no vector, or a variant for single tensors that means something else
            return False
    return [(t.dtype, t.shape) for t in results] == [(t.dtype, t.shape) for t in wanted]


class _Vectors:
    def __init__(self, gm: torch.fx.GraphModule, fakes: Sequence[Any]) -> None:
        self._given = gm.graph
        self._graph = torch.fx.Graph()
        self._root = torch.nn.Module()
        self._inputs = {node: fake.dtype for node, fake in zip(gm.graph.find_nodes(op="placeholder"), fakes, strict=True)}
        self._placeholders: list[torch.fx.Node] = []
        self._kinds: dict[Any, _Kind] = {}
        self._known: dict[Any, _Number] = {}
        self._numbers: dict[torch.fx.Node, _Number | list[_Number]] = {}

    def run(self) -> torch.fx.GraphModule:
        for node, dtype in self._inputs.items():
            placeholder = self._graph.placeholder(node.name)
            self._placeholders.append(placeholder)
            kind = self._kinds.setdefault(("input", dtype), _Kind(lambda graph, vectors: vectors[0]))
            self._numbers[node] = self._new(kind, (), key=node)
        for dtype in dict.fromkeys(self._inputs.values()):
            given = [p for p, of in zip(self._placeholders, self._inputs.values(), strict=True) if of == dtype]
            self._kinds["input", dtype].vector = self._graph.call_function(torch.ops.aten.stack.default, (given,))
        results = list[torch.fx.Node]()
        for node in self._given.nodes:
            if node.op == "output":
                results = [self._vector(self._result(one)) for one in _anything(node.args[0])]
            elif node.op != "placeholder" and _name(node) != "stack":
                self._numbers[node] = self._operation(node, node.args)
        self._graph.output(tuple(results))
        self._graph.lint()
        return torch.fx.GraphModule(self._root, self._graph)

    def _new(self, kind: _Kind, of: tuple[_Number, ...], key: Any) -> _Number:
        if key not in self._known:
            self._known[key] = _Number(kind, of, len(kind.members))
            kind.members.append(self._known[key])
        return self._known[key]

    def _result(self, node: Any) -> list[_Number]:
        if not isinstance(node, torch.fx.Node) or _name(node) != "stack":
            raise _Unknown
        return [self._one(value) for value in _anything(node.args[0])]

    def _one(self, node: Any) -> _Number:
        found = self._numbers.get(node)
        if not isinstance(found, _Number):
            raise _Unknown
        return found

    def _operation(self, node: torch.fx.Node, args: tuple[Any, ...]) -> _Number | list[_Number]:
        name, target = _name(node), node.target
        if target is operator.getitem:
            several = self._numbers[args[0]]
            if not isinstance(several, list):
                raise _Unknown
            position: int = args[1]
            return several[position]
        if name in _SAME or (name in ("reshape", "view") and args[1] in ((), [], (1,), [1])):
            return self._one(args[0])
        if target is torch.tensor and len(args[0]) == 1:
            return self._number(target, args, node.kwargs)
        if not isinstance(target, torch._ops.OpOverload):
            raise _Unknown
        if name.startswith(_LISTS):
            return self._of_lists(name, target, args, node.kwargs)
        if name == "full" and args[0] == []:
            return self._number(target, ([1], *args[1:]), node.kwargs)
        if is_test(node):
            return self._test(target, *args)
        if not is_pointwise(target) and name not in ("_to_copy", "copy"):
            raise _Unknown
        return self._number(target, args, node.kwargs)

    def _test(self, target: Any, given: Sequence[torch.fx.Node], text: str) -> _Number:
        """A test by Python code, which takes single numbers: it is called for each."""
        of = tuple(map(self._one, given))

        def make(graph: torch.fx.Graph, vectors: list[torch.fx.Node]) -> torch.fx.Node:
            parts = [graph.call_function(torch.ops.aten.unbind.int, (vector,)) for vector in vectors]
            members = [
                [graph.call_function(operator.getitem, (part, i)) for part in parts] for i in range(len(kind.members))
            ]
            tested = [graph.call_function(target, (numbers, text)) for numbers in members]
            return graph.call_function(torch.ops.aten.stack.default, (tested,))

        key = (target, text)
        kind = self._kinds.setdefault((key, tuple(id(one.kind) for one in of)), _Kind(make, broadcasts=False))
        return self._new(kind, of, key=(key, tuple(id(one) for one in of)))

    def _of_lists(self, name: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[_Number]:
        """An operation on lists of tensors: one for each of them."""
        packet = getattr(torch.ops.aten, name.removeprefix(_LISTS), None)
        variant = getattr(packet, _VARIANTS.get(target._overloadname, ""), None)
        if variant is None or not is_pointwise(variant):
            raise _Unknown
        each = [tuple(a[i] if isinstance(a, list | tuple) else a for a in args) for i in range(len(args[0]))]
        return [self._number(variant, arguments, kwargs) for arguments in each]

    def _number(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Number:
        of = tuple(self._one(value) for value in args if isinstance(value, torch.fx.Node))
        constants = tuple(None if isinstance(value, torch.fx.Node) else value for value in args)
        if any(isinstance(value, torch.fx.Node) for value in kwargs.values()):
            raise _Unknown
        key = (target, repr(constants), repr(sorted(kwargs.items(), key=lambda item: item[0])))

        def make(graph: torch.fx.Graph, vectors: list[torch.fx.Node]) -> torch.fx.Node:
            rest = iter(vectors)
            given = tuple(next(rest) if isinstance(value, torch.fx.Node) else value for value in args)
            return graph.call_function(target, given, dict(kwargs))

        kind = self._kinds.setdefault(
            (key, tuple(id(one.kind) for one in of)), _Kind(make, target is not torch.ops.aten.copy.default)
        )
        return self._new(kind, of, key=(key, tuple(id(one) for one in of)))

    def _computed(self, kind: _Kind) -> torch.fx.Node:
        """The vector of all numbers of a kind."""
        if kind.vector is None:
            arguments = list(zip(*(one.of for one in kind.members), strict=True))
            shared = [list(dict.fromkeys(numbers)) for numbers in arguments]  # one number for all is broadcast
            given = [
                one if len(one) == 1 and kind.broadcasts else numbers for one, numbers in zip(shared, arguments, strict=True)
            ]
            kind.vector = kind.make(self._graph, [self._vector(list(numbers)) for numbers in given])
        return kind.vector

    def _vector(self, numbers: list[_Number]) -> torch.fx.Node:
        """These numbers in their order."""
        kinds = list(dict.fromkeys(one.kind for one in numbers))
        vectors = [self._computed(kind) for kind in kinds]
        starts, length = dict[_Kind, int](), 0
        for kind in kinds:
            starts[kind] = length
            length += len(kind.members)
        places = [starts[one.kind] + one.place for one in numbers]
        whole = vectors[0] if len(vectors) == 1 else self._graph.call_function(torch.ops.aten.cat.default, (vectors,))
        if places == list(range(length)):
            return whole
        first, last = places[0], places[-1] + 1
        if places == list(range(first, last)):
            return self._graph.call_function(torch.ops.aten.slice.Tensor, (whole, 0, first, last))
        name = f"places{len(list(self._root.buffers()))}"
        self._root.register_buffer(name, torch.tensor(places))
        return self._graph.call_function(torch.ops.aten.index_select.default, (whole, 0, self._graph.get_attr(name)))
