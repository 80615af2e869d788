"""Python's scalar arithmetic as arithmetic on 0-d tensors: float64 for float, int64 for int, with Python's results.

Key names: `result_type` (the Python type of an operation's result) and `tensor_form` (how its tensor form is computed).
A 0-d float64 tensor rounds exactly as a Python float does, so a chain such as ``lr / (1 - beta ** step)`` keeps every bit.
"""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch

ScalarType = type[float] | type[int] | type[bool]
DTYPE: dict[ScalarType, torch.dtype] = {float: torch.float64, int: torch.int64, bool: torch.bool}

_ARITHMETIC: dict[Any, Any] = {
    operator.add: torch.add, operator.sub: torch.sub, operator.mul: torch.mul, operator.floordiv: torch.floor_divide,
    operator.mod: torch.remainder,
}  # fmt: skip
_COMPARISON: dict[Any, Any] = {
    operator.lt: torch.lt, operator.le: torch.le, operator.gt: torch.gt, operator.ge: torch.ge, operator.eq: torch.eq,
    operator.ne: torch.ne,
}  # fmt: skip
_SAME_TYPE: dict[Any, Any] = {
    operator.neg: torch.neg, operator.pos: torch.positive, operator.abs: torch.abs, builtins.abs: torch.abs,
}  # fmt: skip
_TO_FLOAT: dict[Any, Any] = {
    math.sqrt: torch.sqrt, math.exp: torch.exp, math.log: torch.log, math.log2: torch.log2, math.log10: torch.log10,
    math.log1p: torch.log1p, math.expm1: torch.expm1, math.sin: torch.sin, math.cos: torch.cos, math.tan: torch.tan,
    math.tanh: torch.tanh, math.fabs: torch.abs,
}  # fmt: skip
_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    **_ARITHMETIC, **_COMPARISON, **_SAME_TYPE, **_TO_FLOAT, operator.truediv: torch.true_divide, operator.pow: torch.pow,
}  # fmt: skip
_TO_INT = {math.floor: torch.floor, math.ceil: torch.ceil, builtins.int: torch.trunc}
#: How many numbers a function takes, and the type of its result; None: float if one of them is a float, otherwise int.
_RESULTS: dict[Any, tuple[int, ScalarType | None]] = {
    **dict.fromkeys((*_ARITHMETIC, operator.pow), (2, None)), **dict.fromkeys(_COMPARISON, (2, bool)),
    **dict.fromkeys(_SAME_TYPE, (1, None)), **dict.fromkeys((*_TO_FLOAT, builtins.float), (1, float)),
    **dict.fromkeys(_TO_INT, (1, int)), operator.truediv: (2, float), builtins.bool: (1, bool),
}  # fmt: skip


def plain(target: Any) -> Any:
    """The operator that does the same on Python numbers."""
    return operator.pow if target in (math.pow, builtins.pow) else target


def needs_tensors(target: Any) -> bool:
    """Whether a constant operand must be a tensor too.

    Most of these torch functions accept no Python number on the left. Also, pow with a number as exponent uses shortcuts
    (sqrt for 0.5) whose last bit differs from C's pow, which Python calls.
    """
    return plain(target) not in {operator.add, operator.sub, operator.mul}


def result_type(target: Any, operands: Sequence[ScalarType], constants: Sequence[Any]) -> ScalarType | None:
    """The type of ``target(*operands)`` in Python; None if it depends on the values or is unknown.

    ``constants[i]`` is the operand's value if it is constant, else None.
    """
    if target is math.pow:
        return float
    target, any_float = plain(target), float in operands
    if target in (builtins.max, builtins.min):
        return operands[0] if len(operands) >= 2 and len(set(operands)) == 1 else None
    arity, result = _RESULTS.get(target, (0, None))
    of_values = target is operator.pow and not any_float and (constants[1] is None or constants[1] < 0)
    if arity != len(operands) or of_values:
        return None
    return result or (float if any_float else int)


def tensor_form(call: Callable[..., Any], target: Any, operands: Sequence[Any], result: ScalarType, any_float: bool) -> Any:
    """Emits ``target`` on 0-d tensors with ``call(function, *args, **kwargs)``.

    ``operands`` are tensors, or Python constants where those are equivalent. If an operand or the result is a float, the
    caller has converted all of them to float64.
    """
    target = plain(target)
    if target in _FUNCTIONS:
        return call(_FUNCTIONS[target], *operands)
    if target in _TO_INT:
        whole = call(_TO_INT[target], *operands) if any_float else operands[0]
        return call(torch.Tensor.to, whole, torch.int64)
    if target in (builtins.float, builtins.bool):
        return call(torch.Tensor.to, operands[0], DTYPE[result])
    # Python's max() and min() keep the first of equal or incomparable values; torch.maximum() would propagate NaN instead.
    best = operands[0]
    for other in operands[1:]:
        better = call(torch.gt if target is builtins.max else torch.lt, other, best)
        best = call(torch.where, better, other, best)
    return best
