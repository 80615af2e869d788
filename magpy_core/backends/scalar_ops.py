"""Tensor operations that take a Python number, rewritten to take an equivalent 0-d tensor.

A 0-d tensor differs from a Python number: it takes part in type promotion, and half-precision kernels would round it first.
So every operand is converted to the dtype that the kernel computes in (float32 for half types), and the result to the dtype
of the original operation. Key function: `lower_operation`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
import torch.fx

from magpy_core._compat.torch.fused_updates import elementary
from magpy_core.backends.emitter import Emitter, Scalar
from magpy_core.backends.scalar_math import DTYPE
from magpy_core.opgraph.functions import operator_name

_HALF = (torch.float16, torch.bfloat16)
_COMPARISONS = {"eq", "ne", "lt", "le", "gt", "ge"}
_BINARY: dict[str, Callable[..., Any]] = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "pow": torch.pow,
    "floor_divide": torch.floor_divide, "remainder": torch.remainder,
    "fmod": torch.fmod, "maximum": torch.maximum, "minimum": torch.minimum, "eq": torch.eq,
    "ne": torch.ne, "lt": torch.lt, "le": torch.le, "gt": torch.gt, "ge": torch.ge,
}  # fmt: skip
_SPELLINGS = {
    "truediv": "div", "true_divide": "div", "divide": "div", "subtract": "sub", "multiply": "mul",
    "floordiv": "floor_divide", "mod": "remainder",
    "clip": "clamp", "greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le",
    "not_equal": "ne",
}  # fmt: skip
#: Operations whose CPU kernels round a number to the half type before they compute in float32.
_ROUNDS = {"add", "sub", "pow", "remainder", "fmod"}
_IN_PLACE_OPERATORS = {"iadd", "isub", "imul", "itruediv", "ipow", "ifloordiv", "imod", "idiv"}
_REVERSED = {"radd", "rsub", "rmul", "rtruediv", "rdiv", "rpow", "rfloordiv", "rmod"}
#: Operations whose tensor overload takes the number unchanged.
_TAKES_TENSOR = {"_fused_adam_", "_fused_adamw_", "_fused_sgd_", "_fused_adagrad_"}

#: Operations that make a tensor of numbers, or of nested lists of them: symbols would become constants.
MAKE_TENSOR = ("tensor", "as_tensor", "scalar_tensor")
_MOST_NUMBERS = 256  # in such a list: each is an operation


class NotLowered(Exception):
    """No rewrite exists for this operation with a number at this position."""


def lower_operation(emit: Emitter, node: torch.fx.Node, args: tuple[Any, ...], kwargs: dict[str, Any], expected: Any) -> Any:
    """The operation with its Scalars as tensors: a node, or a list of them for a foreach operation.

    ``expected`` is the original operation's result on fakes. Raises NotLowered.
    """
    name = operator_name(node)
    if name in _TAKES_TENSOR:
        return _takes_tensor(emit, elementary(name), args, kwargs)
    if name.startswith("_foreach_"):
        return _foreach(emit, name.removeprefix("_foreach_"), args, kwargs, expected)
    if name == "setitem":
        self, index, value = args
        if not isinstance(value, Scalar) or not emit.is_tensor(self):
            raise NotLowered
        emit.call(operator.setitem, self, index, emit.cast(value, emit.fake(self).dtype))
        return None
    return _one(emit, name, args, kwargs, expected)


def _one(emit: Emitter, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], expected: Any) -> torch.fx.Node:
    if "out" in kwargs or not isinstance(expected, torch.Tensor):
        raise NotLowered
    in_place = name in _IN_PLACE_OPERATORS or (name.endswith("_") and not name.startswith("_"))
    if name in _IN_PLACE_OPERATORS:
        name = name[1:]
    name = name.removesuffix("_")
    swap = name in _REVERSED
    name = name[1:] if swap else name
    name = _SPELLINGS.get(name, name)
    if swap and len(args) >= 2:
        args = (args[1], args[0], *args[2:])
    rewrite = _REWRITES.get(name) or (_binary if name in _BINARY else None)
    if rewrite is None:
        raise NotLowered
    result = emit.to(rewrite(_Operation(emit, name, args, kwargs, expected)), expected.dtype)
    return emit.method("copy_", args[0], result) if in_place else result


class _Operation:
    """The arguments of one operation, in the dtype that it computes in."""

    def __init__(
        self, emit: Emitter, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], expected: torch.Tensor
    ) -> None:
        self.emit, self.name, self.args, self.kwargs, self.expected = emit, name, args, kwargs, expected
        dtype = expected.dtype
        if name in _COMPARISONS:
            known = [a.type(1) if isinstance(a, Scalar) else emit.fake(a) for a in args[:2]]
            dtype = torch.result_type(*known)
        self.dtype = torch.float32 if dtype in _HALF else dtype
        self.rounds_to = dtype if dtype in _HALF and name in _ROUNDS and expected.device.type == "cpu" else None

    def take(self, *names: str) -> list[Any]:
        """The arguments by position or name, None if omitted; raises NotLowered if there are others."""
        if len(self.args) > len(names) or any(key not in names for key in self.kwargs):
            raise NotLowered
        values = {**dict(zip(names, self.args, strict=False)), **self.kwargs}
        return [values.get(n) for n in names]

    def operand(self, value: Any) -> Any:
        """A tensor or number in the computing dtype; a constant stays a Python number."""
        if isinstance(value, Scalar):
            return self.emit.to(self.emit.cast(value, self.rounds_to or self.dtype), self.dtype)
        return self.emit.to(value, self.dtype) if self.emit.is_tensor(value) else value

    def scaled(self, value: Any, factor: Any) -> Any:
        """``value * factor``, with nothing emitted for a factor of one."""
        value = self.operand(value)
        if factor is None or (not isinstance(factor, Scalar | torch.fx.Node) and factor == 1):
            return value
        return self.emit.call(torch.mul, value, self.operand(factor))


def _binary(o: _Operation) -> torch.fx.Node:
    names = ["input" if "input" in o.kwargs else "self", "other"]
    if o.name in ("add", "sub"):
        left, right, alpha = o.take(*names, "alpha")
        return o.emit.call(_BINARY[o.name], o.operand(left), o.scaled(right, alpha))
    left, right, rounding = o.take(*names, "rounding_mode")
    given = {} if rounding is None else {"rounding_mode": rounding}
    return o.emit.call(_BINARY[o.name], o.operand(left), o.operand(right), **given)


def _addcmul(o: _Operation) -> torch.fx.Node:
    base, one, two, value = o.take("self", "tensor1", "tensor2", "value")
    combine = torch.mul if o.name == "addcmul" else torch.div
    # The kernels compute self + value * t1 / t2 in this order.
    product = o.emit.call(combine, o.scaled(one, value), o.operand(two))
    return o.emit.call(torch.add, o.operand(base), product)


def _lerp(o: _Operation) -> torch.fx.Node:
    start, end, weight = o.take("self", "end", "weight")
    if not isinstance(weight, Scalar):
        raise NotLowered
    on_device = o.emit.method("to", o.operand(weight), o.expected.device)
    return o.emit.call(torch.lerp, o.operand(start), o.operand(end), on_device)


def _clamp(o: _Operation) -> torch.fx.Node:
    names = {"clamp": ("min", "max"), "clamp_min": ("min",), "clamp_max": ("max",)}[o.name]
    value, *given = o.take("self", *names)
    bounds = dict(zip(names, given, strict=True))
    result: torch.fx.Node = o.operand(value)
    for key, function, by_number in (("min", torch.maximum, torch.clamp_min), ("max", torch.minimum, torch.clamp_max)):
        bound = bounds.get(key)
        if isinstance(bound, Scalar | torch.fx.Node):
            result = o.emit.call(function, result, o.operand(bound))
        elif bound is not None:
            result = o.emit.call(by_number, result, bound)
    return result


def _where(o: _Operation) -> torch.fx.Node:
    condition, left, right = o.take("condition", "input", "other")
    return o.emit.call(torch.where, condition, o.operand(left), o.operand(right))


def _masked_fill(o: _Operation) -> torch.fx.Node:
    value, mask, number = o.take("self", "mask", "value")
    if not isinstance(number, Scalar):
        raise NotLowered
    # There is no arithmetic, so the number is rounded directly to the tensor's dtype.
    return o.emit.call(torch.masked_fill, value, mask, o.emit.cast(number, o.expected.dtype))


def _filled(o: _Operation) -> torch.fx.Node:
    """full, full_like and fill: an empty tensor of the expected kind, filled."""
    numbers = [a for a in (*o.args, *o.kwargs.values()) if isinstance(a, Scalar)]
    if len(numbers) != 1 or o.kwargs.get("requires_grad"):
        raise NotLowered
    value = o.emit.method("to", o.emit.cast(numbers[0], o.expected.dtype), o.expected.device)
    like = next(filter(o.emit.is_tensor, o.args), None)
    if o.name in ("full_like", "fill") and like is not None and o.emit.fake(like).dtype == o.expected.dtype:
        result = o.emit.call(torch.empty_like, like)
    elif o.name == "full":
        result = o.emit.call(torch.empty, o.args[0], dtype=o.expected.dtype, device=o.expected.device)
    else:
        raise NotLowered
    return o.emit.method("copy_", result, value)


def _made(o: _Operation) -> torch.fx.Node:
    """Constructors: the numbers as 0-d tensors, in the shape of the nested lists."""
    numbers = _leaves(o.args[0]) if o.args else []
    others = o.kwargs.keys() - {"dtype", "device", "requires_grad"}  # pinned memory, say
    if not 0 < len(numbers) <= _MOST_NUMBERS or others or o.kwargs.get("requires_grad"):
        raise NotLowered
    elements = [_element(o, number) for number in numbers]
    if not o.expected.dim():
        return o.emit.method("to", o.emit.call(torch.clone, elements[0]), o.expected.device)
    stacked = o.emit.call(torch.stack, elements)
    if o.expected.dim() > 1:
        stacked = o.emit.method("reshape", stacked, tuple(o.expected.shape))
    return o.emit.method("to", stacked, o.expected.device)


def _element(o: _Operation, number: Any) -> torch.fx.Node:
    """Not where eager mode raises an error for a number that the dtype can't represent."""
    dtype = o.expected.dtype
    if not isinstance(number, Scalar):
        if type(number) not in DTYPE:
            raise NotLowered
        return o.emit.call(torch.full, (), number, dtype=dtype, device="cpu")
    fits = dtype.is_floating_point or dtype is torch.bool or number.type is bool
    if not fits and (number.type, dtype) != (int, torch.int64):
        raise NotLowered
    if number.type is int and dtype.is_floating_point:  # Python's number becomes a double first
        return o.emit.to(o.emit.cast(number, torch.float64), dtype)
    return o.emit.cast(number, dtype)


def _leaves(value: Any) -> list[Any]:
    return [leaf for item in value for leaf in _leaves(item)] if isinstance(value, list | tuple) else [value]


_REWRITES: dict[str, Callable[[_Operation], torch.fx.Node]] = {
    "addcmul": _addcmul, "addcdiv": _addcmul, "lerp": _lerp, "clamp": _clamp, "clamp_min": _clamp, "clamp_max": _clamp,
    "where": _where, "masked_fill": _masked_fill, "full": _filled, "full_like": _filled, "fill": _filled,
    **dict.fromkeys(MAKE_TENSOR, _made),
}  # fmt: skip


def _takes_tensor(emit: Emitter, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.fx.Node:
    if any(isinstance(a, Scalar) for a in args) or any(isinstance(v, Scalar) and k != "lr" for k, v in kwargs.items()):
        raise NotLowered
    lowered = {k: emit.cast(v, torch.float64) if isinstance(v, Scalar) else v for k, v in kwargs.items()}
    return emit.call(target, *args, **lowered)


def _foreach(emit: Emitter, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], expected: Any) -> list[torch.fx.Node]:
    """One operation per tensor, since numbers next to lists of tensors have no tensor overload in general."""
    in_place = name.endswith("_")
    lists = [a for a in args if isinstance(a, list | tuple)]
    if not lists:
        raise NotLowered
    count = len(lists[0])
    results = []
    kwargs = dict(kwargs)
    args += tuple(kwargs.pop(key) for key in ("scalars", "scalar", "exponent", "other") if key in kwargs)
    if name.removesuffix("_") in ("addcmul", "addcdiv") and len(args) == 4:
        *given, kwargs["value"] = args
        args = tuple(given)
    for i in range(count):
        mine = tuple(_pick(a, i, count) for a in args)
        named = {key: _pick(value, i, count) for key, value in kwargs.items()}
        wanted = emit.fake(mine[0]) if in_place else expected[i]
        results.append(_one(emit, name, mine, named, wanted))
    return results


def _pick(value: Any, index: int, count: int) -> Any:
    if not isinstance(value, list | tuple):
        return value
    if len(value) != count:
        raise NotLowered
    return value[index]
