"""Moves logging that waits for a tensor value from the end of a function to after its only call.

The order and the values of the output stay the same, but it comes after the region has returned. Offered if the statement is
the last one before ``return NAME`` and uses only that value and names of the module. Key function: move_logging_out.
"""

from __future__ import annotations

import ast
import builtins

from lsp_server.features.fixes.callers import only_call
from lsp_server.features.fixes.problem import Edit, Fix, Problem, names_in
from lsp_server.features.syntax import Function
from magpy_core.findings import Position, Range

_LEVELS = frozenset({"debug", "info", "warning", "error", "critical", "log"})


def move_logging_out(problem: Problem) -> Fix | None:
    statement, function = problem.statement(), problem.function
    if function is None or not isinstance(statement, ast.Expr) or not _is_logging(statement.value):
        return None
    returned = _returned_after(function, statement)
    if returned is None or statement.lineno != statement.end_lineno or not problem.alone_on_its_lines(statement):
        return None
    # The statement must not log the current frame or stack.
    if names_in(statement) & {"locals", "vars", "globals", "self", "super"} or "stack" in problem.text_of(statement):
        return None
    site = only_call(problem, function)
    if site is None or not isinstance(site.statement, ast.Assign) or site.statement.value is not site.call:
        return None
    if len(site.statement.targets) != 1 or not isinstance(site.statement.targets[0], ast.Name):
        return None
    if not problem.alone_on_its_lines(site.statement):
        return None
    given = site.statement.targets[0].id
    if not _same_names(problem, statement, function, returned, site.inside, given):
        return None
    text = _renamed(problem, statement, returned, given)
    put = Position((site.statement.end_lineno or site.statement.lineno), 0)
    moved = f"{problem.indent_of(site.statement)}{text}\n"
    if put.line >= len(problem.lines):  # the call is in the last line, which has no line end
        return None
    edits = (Edit(problem.whole_lines(statement), ""), Edit(Range(put, put), moved))
    return Fix(f"Move this logging after the call in line {site.statement.lineno}", edits)


def _is_logging(value: ast.expr) -> bool:
    if not isinstance(value, ast.Call):
        return False
    if isinstance(value.func, ast.Name):
        return value.func.id == "print"
    return (
        isinstance(value.func, ast.Attribute)
        and value.func.attr in _LEVELS
        and isinstance(value.func.value, ast.Name)
        and value.func.value.id.lower() in {"logging", "logger", "log", "_log", "_logger"}
    )


def _returned_after(function: Function, statement: ast.stmt) -> str | None:
    """The name in ``return NAME`` right after the statement, if that is the function's only return and its end."""
    body = function.body
    if len(body) < 2 or body[-2] is not statement:
        return None
    last = body[-1]
    inside = [n for n in ast.walk(function) if isinstance(n, (ast.Return, ast.Yield, ast.YieldFrom))]
    if inside != [last] or not isinstance(last, ast.Return) or not isinstance(last.value, ast.Name):
        return None
    return last.value.id


def _same_names(
    problem: Problem, statement: ast.stmt, function: Function, returned: str, inside: Function | None, given: str
) -> bool:
    """Whether every name in the statement has the same meaning after the call."""
    own = _bound(function)
    there = _bound(inside) if inside is not None else set()
    for name in names_in(statement) - {returned}:
        if name in own or name in there or name == given:
            return False
        if not hasattr(builtins, name) and name not in _module_names(problem.tree):
            return False
    # Names that the statement binds itself (in a comprehension, by a walrus) are not supported.
    return not any(isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load) for n in ast.walk(statement))


def _bound(function: Function) -> set[str]:
    stored = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    imported = {
        a.asname or a.name for n in ast.walk(function) if isinstance(n, (ast.Import, ast.ImportFrom)) for a in n.names
    }
    return stored | imported | {a.arg for a in ast.walk(function) if isinstance(a, ast.arg)}


def _module_names(tree: ast.Module) -> set[str]:
    """Names that the module binds once: imports, and assignments that are not repeated."""
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            found += [(a.asname or a.name).split(".")[0] for a in node.names]
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.append(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Global)):
            found += node.names if isinstance(node, ast.Global) else [node.name]
    return {name for name in found if found.count(name) == 1}


def _renamed(problem: Problem, statement: ast.stmt, old: str, new: str) -> str:
    """The statement's text with the returned name replaced by the one at the call. Names in f-strings have no exact
    positions, so they are replaced in the tree."""
    text = problem.text_of(statement)
    if old == new:
        return text

    class Rename(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.AST:
            return ast.copy_location(ast.Name(new, node.ctx), node) if node.id == old else node

    return ast.unparse(ast.fix_missing_locations(Rename().visit(ast.parse(text))))
