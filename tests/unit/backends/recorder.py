"""A small recorder for backend tests: real torch code in, a torch-level graph and its inputs out.

It stands for the engine's op recorder: tensors seen from outside become placeholders, floats marked with `Recorder.number`
become scalar placeholders, and arithmetic on them and on ``x.item()`` results is recorded.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
import torch.fx
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map

from magpy_core._compat.torch.fake import guard_namespace
from magpy_core.backends import get_backend
from magpy_core.backends.base import CompiledGraph
from magpy_core.backends.fakes import make_fake_inputs


class TrackedFloat(float):
    """A float that remembers the node that makes it."""

    node: torch.fx.Node
    recorder: Recorder


class TrackedInt(int):
    """An int that remembers the node that makes it."""

    node: torch.fx.Node
    recorder: Recorder


def _tracked(value: Any, node: torch.fx.Node, recorder: Recorder) -> Any:
    made: Any = TrackedFloat(value) if isinstance(value, float) else TrackedInt(value)
    made.node, made.recorder = node, recorder
    return made


def _operator(function: Callable[..., Any], base: type, reflected: bool) -> Callable[..., Any]:
    def apply(self: Any, *others: Any) -> Any:
        if not all(isinstance(o, int | float) for o in others):
            return NotImplemented
        operands = (*others, self) if reflected else (self, *others)
        plain = [float(o) if isinstance(o, float) else int(o) for o in operands]
        node = self.recorder.graph.call_function(function, tuple(self.recorder.nodes(o) for o in operands))
        return _tracked(function(*plain), node, self.recorder)

    return apply


for _type in (TrackedFloat, TrackedInt):
    for _name in ("add", "sub", "mul", "truediv", "pow"):
        setattr(_type, f"__{_name}__", _operator(getattr(operator, _name), _type, False))
        setattr(_type, f"__r{_name}__", _operator(getattr(operator, _name), _type, True))
    _type.__neg__ = _operator(operator.neg, _type, False)


class Recorder(TorchFunctionMode):
    """Records what runs under it."""

    def __init__(self) -> None:
        super().__init__()
        self.graph = torch.fx.Graph()
        self.inputs: list[Any] = []
        self.known: dict[int, torch.fx.Node] = {}
        self.keep: list[Any] = []
        self.first_op: torch.fx.Node | None = None

    def placeholder(self, value: Any) -> torch.fx.Node:
        placeholders = [n for n in self.graph.nodes if n.op == "placeholder"]
        with (
            self.graph.inserting_after(placeholders[-1])
            if placeholders
            else self.graph.inserting_before(next(iter(self.graph.nodes), None))
        ):
            node = self.graph.placeholder(f"in{len(placeholders)}")
        self.inputs.append(value)
        return node

    def number(self, value: Any) -> Any:
        """``value`` as a scalar placeholder."""
        node = self.placeholder(value)
        node.meta["magpy_scalar"] = type(value)
        return _tracked(value, node, self)

    def nodes(self, tree: Any) -> Any:
        def leaf(value: Any) -> Any:
            if isinstance(value, TrackedFloat | TrackedInt):
                return value.node
            if isinstance(value, torch.Tensor):
                if id(value) not in self.known:
                    self.known[id(value)] = self.placeholder(value)
                    self.keep.append(value)
                return self.known[id(value)]
            return value

        if isinstance(tree, slice):
            return slice(leaf(tree.start), leaf(tree.stop), leaf(tree.step))
        return tree_map(leaf, tree)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        result = func(*args, **kwargs)
        tensors = [t for t in tree_leaves(result) if isinstance(t, torch.Tensor)]
        state = func in (
            torch._C._set_grad_enabled,
            torch.amp.autocast_mode._enter_autocast,
            torch.amp.autocast_mode._exit_autocast,
        )
        if name == "item":
            node = self.graph.call_method("item", (self.nodes(args[0]),))
            return _tracked(result, node, self)
        if name == "__get__" or not (tensors or state or name == "__setitem__"):
            return result
        target = operator.setitem if name == "__setitem__" else func
        node = self.graph.call_function(target, self.nodes(args), self.nodes(kwargs))
        if isinstance(result, torch.Tensor):
            self.remember(result, node)
        elif isinstance(result, list | tuple) and not name.endswith("_"):
            for i, item in enumerate(result):
                if isinstance(item, torch.Tensor):
                    self.remember(item, self.graph.call_function(operator.getitem, (node, i)))
        return result

    def remember(self, tensor: torch.Tensor, node: torch.fx.Node) -> None:
        self.known.setdefault(id(tensor), node)
        self.keep.append(tensor)

    def finish(self, *outputs: Any) -> torch.fx.GraphModule:
        self.graph.output(tuple(self.nodes(o) for o in outputs))
        self.graph.lint()
        return torch.fx.GraphModule({}, self.graph)


def record(function: Callable[..., Any], *args: Any) -> tuple[torch.fx.GraphModule, list[Any]]:
    """The graph of ``function(*args)`` (float arguments vary) and its real inputs; the function runs once, for real."""
    recorder = Recorder()
    args = tuple(recorder.number(a) if type(a) is float else a for a in args)
    with recorder:
        result = function(*args)
    gm = recorder.finish(*(result if isinstance(result, tuple) else () if result is None else (result,)))
    return gm, recorder.inputs


def compile_recorded(gm: torch.fx.GraphModule, inputs: list[Any], backend: str, **options: Any) -> CompiledGraph:
    """Compiles with fakes of ``inputs``."""
    return get_backend(backend).compile(gm, make_fake_inputs(inputs, options.pop("dynamic_dims", None)), **options)


def guards_hold(compiled: CompiledGraph, *inputs: Any) -> bool:
    return all(eval(guard, guard_namespace(), {"L": inputs}) for guard in compiled.guards)
