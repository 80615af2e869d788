"""Replaces a Python float that differs at every step with a 0-d tensor. Key function: number_as_tensor.

In arithmetic with a tensor that has dimensions, a 0-d float64 tensor behaves exactly like a Python float: the dtype stays
the same and the number is rounded once. This does not hold for another 0-d tensor or another number, so every use in the
run must have been with a tensor that has dimensions.
"""

from __future__ import annotations

import ast
import re

from lsp_server.features.fixes.callers import only_call
from lsp_server.features.fixes.problem import Edit, Fix, Problem, imports_torch, is_number
from lsp_server.features.syntax import Function, argument_for

_FLOAT = re.compile(r"-?(?:\d+\.\d*|\d*\.\d+|\d+)(?:e[-+]?\d+)?$")
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div)
_LABELS = frozenset(
    {"add", "sub", "mul", "truediv", "div", "rsub", "__add__", "__sub__", "__mul__", "__truediv__", "__radd__", "__rsub__",
     "__rmul__", "__rtruediv__"}
)  # fmt: skip
_WIDE = re.compile(r"(?:float16|bfloat16|float32|float64)\[\d")


def number_as_tensor(problem: Problem) -> Fix | None:
    if not problem.finding.values or not imports_torch(problem.tree):
        return None
    value = problem.finding.values[0]
    old, arrow, new = value.repr.partition(" -> ")
    if not arrow or not all(_FLOAT.match(text) and not text.lstrip("-").isdigit() for text in (old, new)):
        return None
    name = value.name
    function = problem.function
    if function is None:
        return None
    if name.isidentifier():
        given, loads = _argument(problem, function, name), _names(function, name)
    else:
        found = re.fullmatch(r"self\.([A-Za-z_]\w*)", name)
        given = _attribute(problem, found[1]) if found else None
        loads = _attributes(problem, found[1]) if found else []
    if given is None or not loads or isinstance(given, ast.Constant):
        return None
    if not all(_used_with_tensor(problem, load) for load in loads):
        return None
    edit = Edit(problem.range_of(given), f"torch.tensor({problem.text_of(given)}, dtype=torch.float64)")
    return Fix(f"Pass `{name}` as a tensor", (edit,))


def _attribute(problem: Problem, attribute: str) -> ast.expr | None:
    """The value of the only assignment to ``.attribute`` outside ``__init__``."""
    if not problem.is_whole_program():
        return None
    stores = [
        n for n in ast.walk(problem.tree)
        if isinstance(n, ast.Attribute) and n.attr == attribute and not isinstance(n.ctx, ast.Load)
    ]  # fmt: skip
    later = [n for n in stores if not _in_init(problem, n)]
    parent = problem.parent(later[0]) if len(later) == 1 else None
    if not isinstance(parent, ast.Assign) or len(parent.targets) != 1 or attribute in ("data", "grad"):
        return None
    return parent.value if isinstance(parent.value, (ast.BinOp, ast.Name, ast.Call, ast.Subscript)) else None


def _in_init(problem: Problem, node: ast.AST) -> bool:
    above: ast.AST | None = node
    while above is not None:
        if isinstance(above, ast.FunctionDef):
            return above.name == "__init__"
        above = problem.parent(above)
    return False


def _attributes(problem: Problem, attribute: str) -> list[ast.expr]:
    return [
        n for n in ast.walk(problem.tree)
        if isinstance(n, ast.Attribute) and n.attr == attribute and isinstance(n.ctx, ast.Load)
    ]  # fmt: skip


def _argument(problem: Problem, function: Function, name: str) -> ast.expr | None:
    """The value of an argument in the only call."""
    site = only_call(problem, function)
    return None if site is None else argument_for(name, function, site.call)


def _names(function: Function, name: str) -> list[ast.expr]:
    """Every use of an argument; none if it is rebound."""
    uses = [n for n in ast.walk(function) if isinstance(n, ast.Name) and n.id == name]
    return [] if any(not isinstance(n.ctx, ast.Load) for n in uses) else list(uses)


def _used_with_tensor(problem: Problem, load: ast.expr) -> bool:
    """Whether a use is an operand of arithmetic with a tensor that had dimensions in the run."""
    operation = problem.parent(load)
    if not isinstance(operation, ast.BinOp) or not isinstance(operation.op, _ARITHMETIC):
        return False
    other = operation.right if operation.left is load else operation.left
    if is_number(other) or operation.lineno != operation.end_lineno:
        return False
    # Arithmetic between numbers creates no node, so each operation in the text must have one.
    written = [n for n in ast.walk(problem.tree) if isinstance(n, ast.BinOp) and n.lineno == operation.lineno]
    groups = [[node for node in nodes if node.kind == "call"] for nodes in problem.nodes_at(operation.lineno - 1)]
    return bool(groups) and all(
        sum(node.label in _LABELS for node in nodes) == len(written) and all(_WIDE.match(node.tensor) for node in nodes)
        for nodes in groups
    )
