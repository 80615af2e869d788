"""Scalar lowering: varying Python numbers become 0-d tensors in the graph, so they cause no recompiles.

The input is the recorded torch-level graph: scalar placeholders (``meta["magpy_scalar"]`` is the Python type), ``x.item()``
nodes, `operator`/`math` nodes on numbers, tensor operations that take them. The output is a graph that AOTAutograd accepts,
and its calling convention. A float becomes a 0-d float64 CPU tensor and stays one through Python's arithmetic (bit-equal);
where a tensor operation takes it, it is rounded to the dtype that the kernel computes in. An int becomes a SymInt where a
shape needs it and an int64 tensor where a value does. Every operation is run on fakes in its original and its lowered form;
if dtype, shape or strides differ, the graph is refused. Key types: Lowering, Lowered.

Symbolic floats are not an alternative: Inductor has no kernel argument for a float input, and passes one that comes from
``.item()`` as float32.
"""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.fx
from torch.fx.node import map_aggregate

from magpy_core._compat.torch.operator_schemas import changes_layout
from magpy_core._compat.torch.torch_state import STATE_CALLS, switches_modes
from magpy_core.backends import indexing, scalar_math, scalar_ops
from magpy_core.backends.emitter import Emitter, Scalar, find
from magpy_core.backends.refusals import failures_at
from magpy_core.backends.scalar_math import DTYPE, ScalarType
from magpy_core.findings import Unsupported
from magpy_core.knowledge.operators import Fact, named
from magpy_core.opgraph.functions import REGISTERS_HOOK, node_name, operator_name

#: The type of the number that is read from a tensor, by operator or builtin; None: as its dtype says. Complex numbers are
#: not lowered.
_READS: dict[Any, ScalarType | None] = {
    name: kind
    for facts, kind in ((Fact.READS_ITEM, None), (Fact.READS_FLOAT, float), (Fact.READS_INT, int), (Fact.READS_BOOL, bool))
    for name in named(facts)
} | {builtins.float: float, builtins.int: int, builtins.bool: bool}
_ON_SYMBOLS: dict[Any, Any] = {
    math.sqrt: torch.sym_sqrt, builtins.float: torch.sym_float, builtins.max: torch.sym_max, builtins.min: torch.sym_min,
    operator.not_: torch.sym_not,
}  # fmt: skip


def _are_alike(graph: torch.fx.Graph) -> bool:
    """Whether operations of one kind on tensors of one kind have results of one kind wherever they are in ``graph``: not if
    it enters autocast, or changes the layout of a tensor."""
    return not any(
        (switches_modes(node.target) and node.target not in STATE_CALLS)
        or changes_layout(node_name(node))
        or "out" in node.kwargs
        for node in graph.nodes
    )


def _read_by(node: torch.fx.Node) -> Any:
    """The key of a node in _READS, if it is a read."""
    return node.target if node.target in _READS else node_name(node)


@dataclass
class Lowered:
    """A graph of tensors and SymInts, and its calling convention.

    ``inputs[i]`` is (index of the original input, dtype to wrap it in or None). ``outputs[i]`` describes how to return
    output i: ("graph", index), ("item", index) for a 0-d tensor that represents a number, or ("constant", value).
    """

    graph: torch.fx.GraphModule
    fakes: list[Any]
    inputs: list[tuple[int, torch.dtype | None]]
    outputs: list[tuple[str, Any]]


def needs_lowering(gm: torch.fx.GraphModule) -> bool:
    """Whether the graph contains varying numbers (placeholders or host reads), or returns anything but tensors."""
    *nodes, output = gm.graph.nodes
    returned = output.args[0]
    return any("magpy_scalar" in n.meta if n.op == "placeholder" else _read_by(n) in _READS for n in nodes) or not all(
        isinstance(value, torch.fx.Node) for value in returned
    )


class Lowering:
    """A version of ``gm`` without varying Python numbers; ``gm`` is not changed. Raises Unsupported.

    ``hoist`` marks a scalar to compute once, before the kernels that use it (see `_compat.torch.inductor_extensions`).
    """

    def __init__(
        self, gm: torch.fx.GraphModule, fakes: Sequence[Any], mode: Any, hoist: Callable[[torch.Tensor], torch.Tensor] | None
    ) -> None:
        self.gm, self.fakes, self.mode = gm, list(fakes), mode
        self.emit = Emitter(mode, hoist, reuses=_are_alike(gm.graph))
        self.env: dict[torch.fx.Node, Any] = {}
        self.inputs: list[tuple[int, torch.dtype | None]] = []
        self.new_fakes: list[Any] = []
        self.memo: dict[Any, Scalar] = {}

    def run(self) -> Lowered:
        self._placeholders()
        *nodes, output = (node for node in self.gm.graph.nodes if node.op != "placeholder")
        for node in nodes:
            with failures_at(node):
                self.env[node] = self._node(node)
        outputs = self._output(output)
        self.emit.graph.lint()
        return Lowered(torch.fx.GraphModule({}, self.emit.graph), self.new_fakes, self.inputs, outputs)

    def _placeholders(self) -> None:
        given = list(enumerate(zip(self.gm.graph.find_nodes(op="placeholder"), self.fakes, strict=True)))
        for index, (node, fake) in sorted(given, key=lambda one: "magpy_scalar" in one[1][0].meta):
            kind = node.meta.get("magpy_scalar")
            if kind is None:
                self.env[node] = self._input(index, node.name, fake, None, node.meta)
            else:
                self.env[node] = self._scalar_input(index, node.name, fake, kind)

    def _input(self, index: int, name: str, fake: Any, wrap: torch.dtype | None, meta: dict[str, Any]) -> torch.fx.Node:
        self.inputs.append((index, wrap))
        self.new_fakes.append(fake)
        return self.emit.placeholder(name, fake, meta)

    def _scalar_input(self, index: int, name: str, fake: Any, kind: ScalarType) -> Scalar:
        if kind not in DTYPE:
            raise Unsupported("MP902", f"Input {index} is a varying {kind.__name__}; only float, int and bool can vary.")

        def tensor() -> torch.fx.Node:
            with self.mode:
                wrapped = torch.empty((), dtype=DTYPE[kind], device="cpu")
            return self._input(index, f"{name}_tensor", wrapped, DTYPE[kind], {})

        is_symbol = isinstance(fake, torch.SymInt)
        return Scalar(self.emit, kind, tensor, (lambda: self._input(index, name, fake, None, {})) if is_symbol else None)

    # --- one operation -------------------------------------------------------------------------------------------------

    def _node(self, node: torch.fx.Node) -> Any:
        args, kwargs = self._arguments(node.args), self._arguments(node.kwargs)
        if node.target in STATE_CALLS or REGISTERS_HOOK in node.meta:
            return self.emit.create(node.op, node.target, args, kwargs, node.meta, run=False)
        if node.target is operator.getitem and isinstance(args[0], list | tuple) and isinstance(args[1], int):
            return args[0][args[1]]
        if node.target is torch.autograd.grad:
            return self._gradients(node, args, kwargs)
        read = self._host_read(node, args)
        if read is not None:
            return read
        if not find((args, kwargs), Scalar):
            return self._plain(node, args, kwargs)
        if not kwargs and not any(map(self.emit.is_tensor, find(args, torch.fx.Node))):
            return self._number(node, args)
        return self._operation(node, args, kwargs)

    def _arguments(self, tree: Any) -> Any:
        return map_aggregate(tree, lambda leaf: self.env[leaf] if isinstance(leaf, torch.fx.Node) else leaf)

    def _plain(self, node: torch.fx.Node, args: Any, kwargs: Any) -> Any:
        target: Any = node.target
        fakes = map(self.emit.fake, find((args, kwargs), torch.fx.Node))
        if any(isinstance(fake, torch.SymInt | torch.SymFloat | torch.SymBool) for fake in fakes):
            target = _ON_SYMBOLS.get(target, target)
            args = self._selected(target, args)
        return self.emit.create(node.op, target, args, kwargs, node.meta)

    def _selected(self, target: Any, args: Any) -> Any:
        """The arguments of an indexing operation, whose symbolic numbers have selected a part of the tensor."""
        if target not in indexing.INDEXED or not self.emit.is_tensor(args[0]):
            return args
        selected = indexing.take_numbers(self.emit, args[0], args[1])
        return args if selected is None else (*selected, *args[2:])

    def _gradients(self, node: torch.fx.Node, args: Any, kwargs: Any) -> torch.fx.Node:
        """A backward pass can't be run here, because the fakes have no history; each gradient is assumed to be like its
        leaf."""
        leaves = find(args[1] if len(args) > 1 else kwargs["inputs"], torch.fx.Node)
        gradients = tuple(self.emit.execute("call_function", torch.empty_like, (leaf,), {}) for leaf in leaves)
        return self.emit.assume(node.op, node.target, args, kwargs, node.meta, gradients)

    def _host_read(self, node: torch.fx.Node, args: Any) -> Scalar | None:
        if (key := _read_by(node)) not in _READS or len(args) != 1 or not self.emit.is_tensor(args[0]):
            return None
        fake = self.emit.fake(args[0])
        own: ScalarType = float if fake.is_floating_point() else bool if fake.dtype is torch.bool else int
        kind = _READS[key] or own
        if fake.is_complex() or (own is float and kind is not float):
            raise Unsupported("MP902", f"A compiled graph can't read a {fake.dtype} tensor as {kind.__name__}.")
        value = self.emit.method("reshape", args[0], ()) if fake.dim() else args[0]
        # Always copy: the tensor may be changed in place before the number is used.
        copied = self.emit.call(torch.Tensor.to, self.emit.method("detach", value), DTYPE[kind], copy=True)
        return Scalar(self.emit, kind, lambda: copied)

    # --- numbers -------------------------------------------------------------------------------------------------------

    def _number(self, node: torch.fx.Node, args: tuple[Any, ...]) -> Any:
        operands = [self._as_scalar(a) for a in args]
        constants = [None if isinstance(a, Scalar | torch.fx.Node) else a for a in args]
        types = [o.type if isinstance(o, Scalar) else type(o) for o in operands]
        known = node.op == "call_function" and all(t in DTYPE for t in types)
        result = scalar_math.result_type(node.target, types, constants) if known else None
        if result is None:
            return self._operation(node, args, {})
        key = (node.target, *((id(o) if isinstance(o, Scalar) else (type(o), repr(o))) for o in operands))
        if key not in self.memo:
            self.memo[key] = self._arithmetic(node, operands, types, result)
        return self.memo[key]

    def _arithmetic(self, node: torch.fx.Node, operands: list[Any], types: Sequence[Any], result: ScalarType) -> Scalar:
        any_float = float in types
        kind: ScalarType = float if any_float or result is float else int

        def tensor() -> torch.fx.Node:
            # Python's own conversions (int to float), never hoisted
            forms = [self.emit.to(o.tensor, DTYPE[kind]) if isinstance(o, Scalar) else kind(o) for o in operands]
            if scalar_math.needs_tensors(node.target):
                forms = [f if isinstance(f, torch.fx.Node) else self.emit.constant(f, kind) for f in forms]
            computed: torch.fx.Node = scalar_math.tensor_form(self.emit.call, node.target, forms, result, any_float)
            return computed

        def symbol() -> torch.fx.Node:
            forms = (o.symbol if isinstance(o, Scalar) else o for o in operands)
            target: Any = node.target
            return self.emit.call(_ON_SYMBOLS.get(target, target), *forms)

        cheap = result is int and all(not isinstance(o, Scalar) or o.make_symbol for o in operands)
        scalar = Scalar(self.emit, result, tensor, symbol if cheap else None, computed=True)
        if not cheap:
            _ = scalar.tensor  # emit it now: the operands may not be available in a later segment of the graph
        return scalar

    def _as_scalar(self, value: Any) -> Any:
        """A size or other symbol as a Scalar."""
        fake = self.emit.fake(value)
        if not isinstance(value, torch.fx.Node) or isinstance(fake, bool | int | float):
            return fake
        kind: ScalarType = {torch.SymInt: int, torch.SymFloat: float, torch.SymBool: bool}[type(fake)]
        return Scalar(self.emit, kind, lambda: self.emit.constant(value, kind), lambda: value)

    # --- tensor operations that take numbers ----------------------------------------------------------------------------

    def _operation(self, node: torch.fx.Node, args: Any, kwargs: Any) -> Any:
        if node.target in indexing.INDEXED and all(s.make_symbol for s in find(args[1], Scalar)):
            args = self._selected(node.target, (args[0], self._symbols(args[1]), *args[2:]))
        scalars: list[Scalar] = find((args, kwargs), Scalar)
        if all(s.make_symbol for s in scalars) and operator_name(node) not in scalar_ops.MAKE_TENSOR:
            return self._with_symbols(node, args, kwargs)
        try:
            expected = self.emit.execute(node.op, node.target, args, kwargs)
        except Exception as error:
            text = f"`{operator_name(node)}` takes a number from tensor data, where compilers need a constant: {error}"
            raise Unsupported("MP902", text) from error
        try:
            result = scalar_ops.lower_operation(self.emit, node, args, kwargs, expected)
        except scalar_ops.NotLowered:
            if all(s.type is int for s in scalars):
                return self._with_symbols(node, args, kwargs)
            # Inductor passes a symbolic float to its kernels as float32, so only an int is exact.
            text = "takes a Python float that varies: the backend would recompile for each value."
            raise Unsupported("MP902", f"{operator_name(node)} {text}") from None
        self._verify(node, expected, result)
        return result

    def _with_symbols(self, node: torch.fx.Node, args: Any, kwargs: Any) -> Any:
        return self._plain(node, self._symbols(args), self._symbols(kwargs))

    @staticmethod
    def _symbols(tree: Any) -> Any:
        return map_aggregate(tree, lambda leaf: leaf.symbol if isinstance(leaf, Scalar) else leaf)

    def _verify(self, node: torch.fx.Node, expected: Any, result: Any) -> None:
        wanted = list(expected) if isinstance(expected, list | tuple) else [expected]
        got = list(result) if isinstance(result, list | tuple) else [result]
        for want, have in zip(wanted, got, strict=False):
            if not isinstance(want, torch.Tensor) or have is None:
                continue
            fake = self.emit.fake(have)
            same = fake.dtype == want.dtype and fake.device == want.device and list(fake.shape) == list(want.shape)
            if not same or not _same_strides(want, fake):
                raise Unsupported(
                    "MP902",
                    f"`{operator_name(node)}` would return {fake.dtype} {list(fake.shape)} on {fake.device} instead of "
                    f"{want.dtype} {list(want.shape)} on {want.device} if its varying number were a tensor.",
                )

    def _output(self, node: torch.fx.Node) -> list[tuple[str, Any]]:
        plan: list[tuple[str, Any]] = []
        results: list[Any] = []
        for value in self._arguments(node.args[0]):
            if isinstance(value, Scalar):
                plan.append(("item", len(results)))
                results.append(value.tensor)
            elif isinstance(value, torch.fx.Node):
                plan.append(("graph", len(results)))
                results.append(value)
            elif find(value, (torch.fx.Node, Scalar)):
                raise Unsupported("MP902", "A graph output must be a tensor or a number, not a container of them.")
            else:
                plan.append(("constant", value))
        self.emit.graph.output(tuple(results))
        return plan


def _same_strides(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether the strides of dimensions longer than one agree; symbolic strides are checked by the backend."""
    pairs = zip(one.shape, one.stride(), other.stride(), strict=True)
    return all(type(n) is not int or type(a) is not int or type(b) is not int or n <= 1 or a == b for n, a, b in pairs)
