"""Writes an fx graph and evaluates every node on fakes. Key types: Emitter, Scalar."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.fx
from torch.fx.node import map_aggregate

from magpy_core._compat.torch.fake import symbolic_shapes
from magpy_core.backends.scalar_math import DTYPE, ScalarType

_CONSTANTS = frozenset(
    {bool, int, float, str, type(None), torch.dtype, torch.device, torch.memory_format, torch.layout, type(Ellipsis)}
)
_FIRST = object()  # stands for the first argument, which an operation in place returns


@dataclass(eq=False)
class Scalar:
    """A varying Python number, in the forms that the new graph can represent.

    `tensor` is a 0-d tensor of the type's dtype, `symbol` a SymInt or SymFloat; both are emitted on first use.
    ``make_symbol``: None where only the tensor can be read. ``computed``: the tensor form is the result of arithmetic, not
    an input or a cast.
    """

    emit: Emitter
    type: ScalarType
    make_tensor: Callable[[], torch.fx.Node]
    make_symbol: Callable[[], torch.fx.Node] | None = None
    computed: bool = False
    casts: dict[Any, torch.fx.Node] = field(default_factory=dict)

    @functools.cached_property
    def tensor(self) -> torch.fx.Node:
        return self.make_tensor()

    @functools.cached_property
    def symbol(self) -> torch.fx.Node:
        return self.make_symbol() if self.make_symbol is not None else self.emit.method("item", self.tensor)


def find(tree: Any, kind: type | tuple[type, ...]) -> list[Any]:
    """Every instance of ``kind`` in nested lists, tuples, dicts and slices."""
    found: list[Any] = []
    map_aggregate(tree, lambda leaf: found.append(leaf) if isinstance(leaf, kind) else None)
    return found


class Emitter:
    """Appends operations to ``graph`` and runs each on fakes to determine its dtype and shape. ``reuses``: operations of one
    kind on tensors of one kind are run once, and their results are one fake: an optimizer has the same few operations for
    each parameter. Only if nothing else decides about results (``lowering._are_alike``)."""

    def __init__(self, mode: Any, hoist: Callable[[torch.Tensor], torch.Tensor] | None, *, reuses: bool = False) -> None:
        self.graph = torch.fx.Graph()
        self.mode = mode
        self.hoist = hoist
        self._results: dict[Any, Any] | None = {} if reuses else None
        self._fakes: dict[torch.fx.Node, Any] = {}
        self._last_placeholder: torch.fx.Node | None = None

    def placeholder(self, name: str, fake: Any, meta: dict[str, Any]) -> torch.fx.Node:
        """Adds an input after the existing inputs, whatever the current position in the graph."""
        last = self._last_placeholder
        with self.graph.inserting_after(last) if last is not None else self.graph.inserting_before():
            self._last_placeholder = node = self.graph.placeholder(name)
        node.meta.update(meta)
        # Use an alias: the input's own fake must not take part in autograd or change its version.
        self._fakes[node] = fake.detach() if isinstance(fake, torch.Tensor) else fake
        return node

    def call(self, target: Any, *args: Any, **kwargs: Any) -> torch.fx.Node:
        return self.create("call_function", target, args, kwargs, {})

    def method(self, name: str, *args: Any) -> torch.fx.Node:
        return self.create("call_method", name, args, {}, {})

    def create(self, op: str, target: Any, args: Any, kwargs: Any, meta: dict[str, Any], run: bool = True) -> torch.fx.Node:
        node = self.graph.create_node(op, target, args, kwargs)
        node.meta.update(meta)
        self._fakes[node] = self.execute(op, target, args, kwargs) if run else None
        return node

    def assume(self, op: str, target: Any, args: Any, kwargs: Any, meta: dict[str, Any], fake: Any) -> torch.fx.Node:
        """A node that is not run; ``fake`` is its value."""
        node = self.create(op, target, args, kwargs, meta, run=False)
        self._fakes[node] = fake
        return node

    def execute(self, op: str, target: Any, args: Any, kwargs: Any) -> Any:
        """The result of an operation on the fakes of nodes, with 1 for each varying number."""

        def value_of(leaf: Any) -> Any:
            return leaf.type(1) if isinstance(leaf, Scalar) else self.fake(leaf)

        args, kwargs = (_mutable(map_aggregate(tree, value_of)) for tree in (args, kwargs))
        key = None if self._results is None else _kind((target, args, kwargs))
        if self._results is not None and key in self._results:
            result = self._results[key]
            return args[0] if result is _FIRST else result
        with symbolic_shapes(), self.mode, torch.no_grad():
            result = getattr(args[0], target)(*args[1:], **kwargs) if op == "call_method" else target(*args, **kwargs)
        if self._results is not None and key is not None and isinstance(result, torch.Tensor) and _kind(result) is not None:
            self._results[key] = _FIRST if args and result is args[0] else result
        return result

    def fake(self, value: Any) -> Any:
        """The value of a node for fake inputs; any other value is returned unchanged."""
        return self._fakes[value] if isinstance(value, torch.fx.Node) else value

    def is_tensor(self, value: Any) -> bool:
        return isinstance(self.fake(value), torch.Tensor)

    def to(self, value: torch.fx.Node, dtype: torch.dtype) -> torch.fx.Node:
        return value if self.fake(value).dtype == dtype else self.method("to", value, dtype)

    def cast(self, scalar: Scalar, dtype: torch.dtype) -> torch.fx.Node:
        """The tensor form in ``dtype``: the only place where a Python number is rounded to a kernel's dtype."""
        if dtype not in scalar.casts:
            value = self.to(scalar.tensor, dtype)
            if self.hoist is not None and scalar.computed and self.fake(value).device.type == "cpu":
                value = self.call(self.hoist, value)
            scalar.casts[dtype] = value
        return scalar.casts[dtype]

    def constant(self, value: Any, kind: ScalarType) -> torch.fx.Node:
        return self.call(torch.full, (), value, dtype=DTYPE[kind], device="cpu")


class _Unlike(Exception):
    """Something that is not like another."""


def _kind(tree: Any) -> Any:
    """What decides about the result of an operation on fakes, if it decides alone; else None."""
    try:
        return _parts(tree)
    except _Unlike:
        return None


def _parts(tree: Any) -> Any:
    kind = type(tree)
    if kind in _CONSTANTS:
        return kind, repr(tree)
    if kind in (list, tuple):
        return kind, *map(_parts, tree)
    if kind is dict:
        return tuple((key, _parts(value)) for key, value in tree.items())
    if isinstance(tree, torch.Tensor):
        numbers = (*tree.shape, *tree.stride()) if tree.layout is torch.strided else (None,)
        if tree.dtype.is_complex or any(type(n) is not int for n in numbers):
            raise _Unlike
        return numbers, tree.dim(), tree.dtype, tree.device, tree.requires_grad
    if callable(tree):
        return tree
    raise _Unlike


def _mutable(tree: Any) -> Any:
    """The tree with plain lists and dicts instead of fx's immutable ones, for operators that require exactly ``list``."""
    if isinstance(tree, list):
        return [_mutable(item) for item in tree]
    if type(tree) is tuple:
        return tuple(map(_mutable, tree))
    return {key: _mutable(item) for key, item in tree.items()} if isinstance(tree, dict) else tree
