"""What compiled code that is kept on disk assumes about sizes. Key function: keep_all_guards.

torch's caches keep the guards of a graph with its code, but only those on sizes that are inputs of the graph themselves: all
of them in TorchDynamo's graphs. MagPy's graphs get tensors only, whose guards would be lost, and the code would be used for
sizes that it is wrong for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from torch import SymInt

if TYPE_CHECKING:
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

_NEVER = "False"


def keep_all_guards(shape_env: ShapeEnv) -> None:
    """Lets the caches keep all guards of this shape environment, by its symbols' names: those in the keys of the caches."""
    environment: Any = shape_env

    def produce(placeholders: Sequence[Any], *, guards: Any = None, ignore_static: bool = True) -> str | None:
        return _text(environment)

    def evaluate(code: str, args: Sequence[Any]) -> bool:
        return _holds(environment, code)

    environment.get_pruned_guards = lambda symints: list(environment.guards)
    environment.produce_guards_expression = produce
    environment.evaluate_guards_expression = evaluate


def _values(environment: Any) -> dict[Any, Any]:
    """The symbols and their values in this compilation."""
    values = getattr(environment, "backed_var_to_val", None)  # from torch 2.12 on
    return dict(environment.var_to_val if values is None else values)


def _text(environment: Any) -> str | None:
    """A Python expression over the symbols' names; None: any sizes will do."""
    from torch.utils._sympy.printers import PythonPrinter

    known, printer = set(_values(environment)), PythonPrinter()
    assumed = [guard.expr for guard in environment.guards]
    fixed = {symbol: value for symbol in known if (value := environment.replace(symbol)) != symbol}
    if not all(expression.free_symbols <= known for expression in [*assumed, *fixed.values()]):
        return _NEVER
    try:
        texts = {f"({printer.doprint(expression)})" for expression in assumed}
        texts |= {f"({symbol} == {printer.doprint(value)})" for symbol, value in fixed.items()}
    except Exception:  # it can't print all that there is: other code is compiled then
        return _NEVER
    for symbol, bounds in environment.var_to_range.items():
        if symbol in known:
            texts |= {f"({symbol} >= {bounds.lower})"} if bounds.lower.is_Integer else set()
            texts |= {f"({symbol} <= {bounds.upper})"} if bounds.upper.is_Integer else set()
    return " and ".join(sorted(texts)) or None


def _holds(environment: Any, code: str) -> bool:
    """Whether guards that were kept hold here; if so, they are guards of this environment too."""
    from torch.fx.experimental.sym_node import SymNode
    from torch.fx.experimental.symbolic_shapes import SYMPY_INTERP

    values = _values(environment)
    numbers = {str(symbol): int(value) for symbol, value in values.items()}
    symbols = {str(s): SymInt(SymNode(s, environment, int, int(value), fx_node=None)) for s, value in values.items()}
    try:
        return bool(eval(code, dict(SYMPY_INTERP), numbers)) and bool(eval(code, dict(SYMPY_INTERP), symbols))
    except (NameError, ZeroDivisionError):  # symbols of another graph; a size that makes a divisor 0
        return False
