"""ShapeTracker: in a dynamic recording, sizes that depend on a varying dimension become symbolic scalars.

Every recorded operation is repeated on fake tensors with symbolic sizes; when the program reads a shape, the fake's size
expression says how it depends on the graph inputs' dimensions. Key type: ShapeTracker.
"""

from __future__ import annotations

import functools
import operator
import types
from typing import Any

import torch
import torch.fx

from magpy_core._compat.torch.fake import (
    ProtectRealTensors,
    assumptions,
    fakify,
    hint_of,
    is_symbolic,
    new_fake_mode,
    sym_expression,
    symbolic_int,
    symbolic_shapes,
)  # fmt: skip
from magpy_core._compat.torch.warning_filters import no_warnings
from magpy_core.findings import HERE, Unsupported
from magpy_core.opgraph.host import Host
from magpy_core.opgraph.inputs import GraphInputs
from magpy_core.opgraph.scalars import ScalarTable, Sym
from magpy_core.opgraph.values import Values, tensors_in

_RELATIONS = {"Equality": operator.eq, "Unequality": operator.ne, "StrictLessThan": operator.lt, "LessThan": operator.le,
              "StrictGreaterThan": operator.gt, "GreaterThan": operator.ge}  # fmt: skip
_LOGIC = {"And": operator.and_, "Or": operator.or_}
_FUNCTIONS = {
    "Add": operator.add, "Mul": operator.mul, "Pow": operator.pow, "FloorDiv": operator.floordiv, "Mod": operator.mod,
    "CleanDiv": operator.floordiv, "PythonMod": operator.mod, "Max": max, "Min": min,
}  # fmt: skip


class ShapeTracker:
    """Symbolic sizes of one recording. ``dims``: access path of a graph input -> dimensions that vary. It does nothing
    unless ``vary``: sizes may be dynamic."""

    def __init__(
        self, host: Host, scalars: ScalarTable, inputs: GraphInputs, values: Values, dims: dict[str, set[int]], vary: bool
    ) -> None:
        self.host, self.scalars, self.inputs, self.values = host, scalars, inputs, values
        self.dims = dims
        self.vary = vary
        self._symbols: dict[Any, Sym] = {}  # sympy symbol -> leaf
        self._env: Any = None
        self._fakes: dict[torch.fx.Node, Any] = {}
        self._fixed: set[Any] = set()  # sympy symbols of specialized sizes that follow from data
        self._assumed = 0  # how many of the environment's assumptions are part of the guard

    def read(self, tensor: torch.Tensor, what: str, result: Any, args: tuple[Any, ...]) -> Any:
        """``tensor.shape``, ``.size(d)``, ``len(t)``, ``.numel()`` with the varying sizes as private copies."""
        expressions = self.expressions(tensor) if self.vary else None
        if expressions is None:
            return result
        if what in ("stride", "storage_offset"):
            if any(isinstance(e, Sym) for e in expressions):
                raise Unsupported("MP109", f"{HERE} reads `{what}` of a tensor whose shape varies.")
            return result
        if what == "shape" or (what == "size" and not args):
            return torch.Size([self._number(e, int(n)) for e, n in zip(expressions, result, strict=True)])
        if what in ("size", "__len__"):
            return self._number(expressions[int(args[0]) if args else 0], result)
        times = functools.partial(self._combine, operator.mul)  # numel, nelement
        return self._number(functools.reduce(times, [e for e in expressions if e != 1] or [1]), result)

    def layout_read(self) -> None:
        """Python reads a layout, which may depend on every varying size."""
        self.hold([tensor for tensor, _ in self.inputs.guarded.values()])

    def guard_path(self, node: torch.fx.Node) -> None:
        """The result of ``node`` depends on sizes by more than its shape: for example on whether an input was contiguous.
        The path that torch's shape functions take up to ``node`` becomes part of the guard. If it can't be determined (an
        operation has no shape function, or one that needs plain numbers), sizes are specialized."""
        if not self.vary:
            return
        try:
            self._node_fake(node)
        except Exception:  # whatever torch or a custom operation raises there
            self.layout_read()
        else:
            self._assume()

    def hold(self, tensors: list[torch.Tensor]) -> None:
        """Specialize the sizes of these tensors: Python sees something that depends on them."""
        for tensor in tensors if self.vary else ():
            for size in self.expressions(tensor) or ():
                if isinstance(size, Sym):
                    self.host.escape(size, self.host.site)

    def _combine(self, fn: Any, a: Any, b: Any) -> Any:
        hint = fn(*(x.hint if isinstance(x, Sym) else x for x in (a, b)))
        return self.scalars.call(fn, (a, b), hint) if isinstance(a, Sym) or isinstance(b, Sym) else hint

    def _number(self, expression: Any, value: int) -> int:
        return self.scalars.bind(int(value), expression) if isinstance(expression, Sym) else int(value)

    def expressions(self, tensor: torch.Tensor) -> list[Any] | None:
        """One Sym or int for each dimension."""
        fake = self._fake_of(tensor)
        if fake is None:
            return None
        self._assume()
        out: list[Any] = []
        unlike = Unsupported("MP109", f"{HERE} reads a size that can't be computed from the dimensions that vary.")
        if len(fake.shape) != tensor.dim():
            raise unlike
        for size, real in zip(fake.shape, tensor.shape, strict=True):
            if hint_of(size) not in (None, int(real)):  # torch's shape function disagrees with the operation
                raise unlike
            expr = sym_expression(size)
            out.append(int(real) if expr is None or not expr.free_symbols else self._size(expr, int(real)))
        return out

    def _size(self, expr: Any, real: int) -> Any:
        """A size as a Sym. One that a Sym can't express is a plain int, and the sizes that it depends on are specialized."""
        if expr.free_symbols - self._symbols.keys() - self._fixed:
            raise Unsupported("MP109", f"{HERE} reads a size that depends on tensor data.")
        found = self._term(expr)
        if found is None:
            self._hold(expr)
        return real if found is None else found

    def fix(self, tensor: torch.Tensor) -> None:
        """Specialize the sizes of ``tensor``, which follow from data."""
        if not self.vary:
            return
        try:
            fake = self._fake_of(tensor)
        except Unsupported:
            raise
        except Exception:  # whatever torch or a custom operation raises there: `torch.zeros(n, 2)`, where `n` is a tensor
            self._fakes[self.inputs.node(tensor)] = fakify(self._mode, tensor, f"x{len(self._fakes)}", set())
            return
        if fake is not None:
            found = (sym_expression(size) for size in fake.shape)
            self._fixed |= {s for expr in found if expr is not None for s in expr.free_symbols} - self._symbols.keys()

    def mark_from_data(self, result: Any) -> None:
        """Marks tensors of an operation's result whose sizes follow from data, or can't be followed."""
        for tensor in tensors_in(result) if self.vary else ():
            if tensor in self.values and self._is_from_data(tensor):
                self.values.mark_shaped_by_data(tensor)

    def _is_from_data(self, tensor: torch.Tensor) -> bool:
        if self.host.call_keeps_state:
            self.inputs.node(tensor).meta["magpy_keeps_state"] = True
            return True
        try:
            fake = self._fake_of(tensor)
        except Exception:  # whatever torch or a custom operation raises there
            return True
        found = [] if fake is None else [sym_expression(size) for size in fake.shape]
        return any(expr is not None and expr.free_symbols - self._symbols.keys() - self._fixed for expr in found)

    def _assume(self) -> None:
        """Torch's shape functions branched on sizes (the last window of a pooling, a transform that needs a plain int):
        guard on these branches."""
        found = assumptions(self._env, self._assumed)
        self._assumed += len(found)
        for assumption in found:
            is_negated = type(assumption).__name__ == "Not"  # of a condition on one of two ranges, say
            expr = assumption.to_nnf(simplify=False) if is_negated else assumption
            for part in expr.args if type(expr).__name__ == "And" else (expr,):
                condition = self._condition(part)
                if isinstance(condition, Sym):
                    self.host.branch(condition, True, "truth")
                else:
                    self._hold(part)

    def _condition(self, expr: Any) -> Any:
        """A sympy condition on sizes as a Sym, or None."""
        name = type(expr).__name__
        if name in _LOGIC:
            parts = [self._condition(part) for part in expr.args]
            return None if None in parts else functools.reduce(functools.partial(self._combine, _LOGIC[name]), parts)
        sides = [self._term(side) for side in expr.args] if name in _RELATIONS else [None]
        return None if None in sides else self._combine(_RELATIONS[name], *sides)

    def _hold(self, expr: Any) -> None:
        """Specialize the sizes in an expression."""
        for symbol in expr.free_symbols & self._symbols.keys():
            self.host.escape(self._symbols[symbol], self.host.site)

    def _term(self, expr: Any) -> Any:
        """A sympy size expression as a Sym over graph-input sizes, or an int; None if neither can express it."""
        if expr.is_Symbol:
            return self._symbols.get(expr)
        if expr.is_Integer:
            return int(expr)
        fn, args = _FUNCTIONS.get(type(expr).__name__), [self._term(a) for a in expr.args]
        if fn is None or None in args:
            return None
        return functools.reduce(lambda total, a: self._combine(fn, total, a), args)

    def _fake_of(self, tensor: torch.Tensor) -> Any:
        """The fake of a recorded tensor: the fake of an input, or the result of the operation repeated on fakes."""
        inputs = self.inputs
        if tensor not in self.values and inputs.guard(tensor).path not in self.dims:
            return None
        return self._node_fake(inputs.node(tensor))

    def _node_fake(self, wanted: torch.fx.Node) -> Any:
        if self._env is None:
            self._mode, self._env = new_fake_mode(dynamic=True)
        order = []
        stack = [wanted]
        while stack:  # inputs first, without recursion: graphs are deep
            node = stack.pop()
            if node in self._fakes or node in order:
                continue
            if "magpy_keeps_state" in node.meta:
                raise Unsupported("MP109", f"{HERE} reads a size from a call that keeps state.")
            missing = [n for n in node.all_input_nodes if n not in self._fakes]
            if missing:
                stack.append(node)
                stack.extend(missing)
            else:
                order.append(node)
                self._fakes[node] = self._execute(node)
        return self._fakes[wanted]

    def _execute(self, node: torch.fx.Node) -> Any:
        if node.op == "placeholder":
            if "magpy_hint" in node.meta:
                return self._number_fake(node)
            source, tensor = next((source, tensor) for n, source, tensor in self.inputs.tensors if n is node)
            dims = {d for d in self.dims.get(source.path, ()) if d < tensor.dim()}
            fake = fakify(self._mode, tensor, f"x{len(self._fakes)}", dims)
            for d in dims:
                expr = sym_expression(fake.shape[d])
                if expr is not None and expr.is_Symbol and expr not in self._symbols:
                    size = self.host.sources.make("size", source, d)
                    self._symbols[expr] = self.scalars.source(size, int(tensor.shape[d]))
            return fake
        try:
            return self._call(node, self._fakes.__getitem__)
        except Unsupported:
            raise
        except Exception:  # whatever torch or a custom operation raises there
            numbers = [n for n in node.all_input_nodes if "magpy_hint" in n.meta and is_symbolic(self._fakes[n])]
            if not numbers:
                raise
            for number in numbers:  # it has no shape function for numbers that vary
                self._hold(sym_expression(self._fakes[number]))
            return self._call(node, lambda n: n.meta["magpy_hint"] if n in numbers else self._fakes[n])

    def _number_fake(self, node: torch.fx.Node) -> Any:
        """A number that is known before the graph runs."""
        hint = node.meta["magpy_hint"]
        if not self.vary or type(hint) is not int:
            return hint
        number = symbolic_int(self._env, hint, f"n{len(self._fakes)}")
        sym = next(sym for n, sym in self.inputs.numbers if n is node)
        self._symbols[sym_expression(number)] = sym
        return number

    def _call(self, node: torch.fx.Node, fetch: Any) -> Any:
        """The operation of a node, on what ``fetch`` gives for its arguments."""
        target: Any = node.target
        args, kwargs = torch.fx.map_arg(node.args, fetch), torch.fx.map_arg(node.kwargs, fetch)
        with symbolic_shapes(), self._mode, no_warnings():
            if node.op == "call_method":
                return getattr(args[0], target)(*args[1:], **kwargs)
            if isinstance(target, types.BuiltinFunctionType):
                return target(*args, **kwargs)
            with ProtectRealTensors() as above:  # custom code may change tensors that are not its arguments
                try:
                    return target(*args, **kwargs)
                finally:
                    if above.stopped:  # even if that code has caught the error
                        raise Unsupported("MP109", f"{HERE} reads a size from a call that changes its own tensors.")
