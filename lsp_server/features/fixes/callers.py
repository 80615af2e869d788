"""Finds the only call of the function that contains a finding. Key function: only_call.

Only for programs of one file: the entrypoint defines the function and calls it in one place, so there are no other calls.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from lsp_server.features.fixes.problem import Problem
from lsp_server.features.syntax import Function

_SAME_MODULE = frozenset({"to", "cuda", "cpu", "eval", "train", "float", "double", "half", "bfloat16", "requires_grad_"})
_HOOKS = ("register_forward", "register_module_forward", "register_full_backward", "DataParallel", "__call__", "hook")


@dataclass(frozen=True)
class Call:
    """The one call: the expression, the statement it is in, and the function around it (None: the module)."""

    call: ast.Call
    statement: ast.stmt
    inside: Function | None


def only_call(problem: Problem, function: Function) -> Call | None:
    """The only call of ``function``; None if there are more, or if the text may not show all of them."""
    if not problem.is_whole_program() or function.decorator_list or isinstance(function, ast.AsyncFunctionDef):
        return None
    owner = problem.parent(function)
    if isinstance(owner, ast.Module):
        name = function.name
    elif isinstance(owner, ast.ClassDef) and isinstance(problem.parent(owner), ast.Module) and function.name == "forward":
        if any(word in line for line in problem.lines for word in _HOOKS) or owner.decorator_list:
            return None
        found = _only_instance(problem, owner)
        if found is None:
            return None
        name = found
    else:
        return None
    uses = _loads(problem, name)
    calls = [(use, parent) for use in uses if isinstance(parent := problem.parent(use), ast.Call) and parent.func is use]
    others = [use for use in uses if not any(use is call for call, _ in calls)]
    if len(calls) != 1 or any(not _reads_attribute(problem, use, name) for use in others):
        return None
    if isinstance(owner, ast.Module) and others:
        return None  # passed on: it may be called from anywhere
    call = calls[0][1]
    statement, inside = _surroundings(problem, call)
    return None if statement is None else Call(call, statement, inside)


def _only_instance(problem: Problem, owner: ast.ClassDef) -> str | None:
    """The name of the only instance of a class, created at module level or in a function."""
    uses = _loads(problem, owner.name)
    created = [p for use in uses if isinstance(p := problem.parent(use), ast.Call) and p.func is use]
    if len(uses) != 1 or len(created) != 1:
        return None
    assigned = _after_method_chain(problem, created[0])
    if not isinstance(assigned, ast.Assign) or len(assigned.targets) != 1 or not isinstance(assigned.targets[0], ast.Name):
        return None
    name = assigned.targets[0].id
    stores = [n for n in ast.walk(problem.tree) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)]
    arguments = [n for n in ast.walk(problem.tree) if isinstance(n, ast.arg) and n.arg == name]
    return name if len(stores) == 1 and not arguments else None


def _after_method_chain(problem: Problem, created: ast.Call) -> ast.AST | None:
    """The parent of ``Net()``, skipping methods that return the module itself: ``Net().to(device).eval()``."""
    node: ast.AST = created
    while isinstance(attribute := problem.parent(node), ast.Attribute) and attribute.attr in _SAME_MODULE:
        called = problem.parent(attribute)
        if not isinstance(called, ast.Call) or called.func is not attribute:
            return None
        node = called
    return problem.parent(node)


def _loads(problem: Problem, name: str) -> list[ast.Name]:
    return [n for n in ast.walk(problem.tree) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)]


def _reads_attribute(problem: Problem, use: ast.Name, name: str) -> bool:
    """Whether the use only accesses an attribute (``net.parameters()``, ``net.scale = 1``) and does not call the module."""
    parent = problem.parent(use)
    return isinstance(parent, ast.Attribute) and parent.attr not in ("forward", "apply", "compile")


def _surroundings(problem: Problem, call: ast.Call) -> tuple[ast.stmt | None, Function | None]:
    node: ast.AST | None = call
    statement: ast.stmt | None = None
    while node is not None:
        if isinstance(node, (ast.Lambda, ast.GeneratorExp, ast.ListComp, ast.SetComp, ast.DictComp)):
            return None, None  # called at another time, or more than once
        if statement is None and isinstance(node, ast.stmt):
            statement = node
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return statement, node
        node = problem.parent(node)
    return statement, None
