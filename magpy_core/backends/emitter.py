"""Writes an fx graph and evaluates every node on fakes. Key types: Emitter, Value (a node and its fake), Scalar."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.fx
from torch.fx.node import map_aggregate

from magpy_core.backends.scalar_math import DTYPE, ScalarType


@dataclass(eq=False)
class Value:
    """A node of the new graph and its value for fake inputs."""

    node: torch.fx.Node
    fake: Any


@dataclass(eq=False)
class Scalar:
    """A varying Python number, in the forms that the new graph can represent.

    `tensor()` is a 0-d tensor of the type's dtype, `symbol()` a SymInt or SymFloat; both are emitted on first use.
    ``computed``: the tensor form is the result of arithmetic, not an input or a cast.
    """

    type: ScalarType
    make_tensor: Callable[[], Value]
    make_symbol: Callable[[], Value]
    symbol_is_cheap: bool
    computed: bool = False
    _tensor: Value | None = None
    _symbol: Value | None = None
    casts: dict[Any, Value] = field(default_factory=dict)

    def tensor(self) -> Value:
        if self._tensor is None:
            self._tensor = self.make_tensor()
        return self._tensor

    def symbol(self) -> Value:
        if self._symbol is None:
            self._symbol = self.make_symbol()
        return self._symbol

    def stand_in(self) -> float | int | bool:
        """A Python number of the right type, to infer an operation's dtype and shape."""
        return self.type(1)


def find(tree: Any, kind: type) -> list[Any]:
    """Every instance of ``kind`` in nested lists, tuples, dicts and slices."""
    found: list[Any] = []

    def visit(leaf: Any) -> Any:
        if isinstance(leaf, kind):
            found.append(leaf)
        return leaf

    map_aggregate(tree, visit)
    return found


class Emitter:
    """Appends operations to ``graph`` and runs each on fakes to determine its dtype and shape."""

    def __init__(self, mode: Any, hoist: Callable[[torch.Tensor], torch.Tensor] | None) -> None:
        self.graph = torch.fx.Graph()
        self.mode = mode
        self.hoist = hoist
        self._last_placeholder: torch.fx.Node | None = None

    def placeholder(self, name: str, fake: Any, meta: dict[str, Any] | None = None) -> Value:
        """Adds an input after the existing inputs, whatever the current position in the graph."""
        if self._last_placeholder is not None:
            with self.graph.inserting_after(self._last_placeholder):
                node = self.graph.placeholder(name)
        else:
            first = next(iter(self.graph.nodes), None)
            with self.graph.inserting_before(first):
                node = self.graph.placeholder(name)
        node.meta.update(meta or {})
        node.meta["example_value"] = fake
        self._last_placeholder = node
        # Use an alias: the input's own fake must not take part in autograd or change its version.
        return Value(node, fake.detach() if isinstance(fake, torch.Tensor) else fake)

    def call(self, target: Any, *args: Any, **kwargs: Any) -> Any:
        """Adds ``target(*args, **kwargs)``; arguments may contain Values."""
        return self.create("call_function", target, args, kwargs, {})

    def create(self, op: str, target: Any, args: Any, kwargs: Any, meta: dict[str, Any], run: bool = True) -> Value:
        node = self.graph.create_node(op, target, nodes_of(args), nodes_of(kwargs))
        node.meta.update(meta)
        return Value(node, self.execute(op, target, fakes_of(args), fakes_of(kwargs)) if run else None)

    def execute(self, op: str, target: Any, args: Any, kwargs: Any) -> Any:
        with self.mode, torch.no_grad():
            if op == "call_method":
                return getattr(args[0], target)(*args[1:], **kwargs)
            return target(*args, **kwargs)

    def cast_exact(self, scalar: Scalar, dtype: torch.dtype) -> Value:
        """The tensor form with Python's own conversions (int to float); never hoisted."""
        value: Value = scalar.tensor()
        return value if value.fake.dtype == dtype else self.call(torch.Tensor.to, value, dtype)

    def cast(self, scalar: Scalar, dtype: torch.dtype) -> Value:
        """The tensor form in ``dtype``: the only place where a Python number is rounded to a kernel's dtype."""
        cached = scalar.casts.get(dtype)
        if cached is not None:
            return cached
        value: Value = scalar.tensor()
        if value.fake.dtype != dtype:
            value = self.call(torch.Tensor.to, value, dtype)
        if self.hoist is not None and scalar.computed and value.fake.device.type == "cpu":
            value = self.call(self.hoist, value)
        scalar.casts[dtype] = value
        return value

    def constant(self, value: Any, kind: ScalarType) -> Value:
        made: Value = self.call(torch.full, (), value, dtype=DTYPE[kind], device="cpu")
        return made


def nodes_of(tree: Any) -> Any:
    return map_aggregate(tree, lambda leaf: leaf.node if isinstance(leaf, Value) else leaf)


def fakes_of(tree: Any) -> Any:
    """The tree with fakes instead of values and stand-in numbers instead of scalars."""

    def leaf_of(leaf: Any) -> Any:
        if isinstance(leaf, Value):
            return leaf.fake
        return leaf.stand_in() if isinstance(leaf, Scalar) else leaf

    return _mutable(map_aggregate(tree, leaf_of))


def _mutable(tree: Any) -> Any:
    """The tree with plain lists and dicts instead of fx's immutable ones, for operators that require exactly ``list``."""
    if isinstance(tree, list):
        return [_mutable(item) for item in tree]
    if isinstance(tree, tuple) and type(tree) is tuple:
        return tuple(_mutable(item) for item in tree)
    if isinstance(tree, dict):
        return {key: _mutable(item) for key, item in tree.items()}
    return tree


def tensors(values: Sequence[Any]) -> list[Value]:
    return [v for v in values if isinstance(v, Value) and isinstance(v.fake, torch.Tensor)]
