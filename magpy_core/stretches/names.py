"""The names that statements bind in their own scope. Key function: bound_names."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def own_nodes(statements: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes of ``statements`` that run in their scope: all but the bodies of functions, classes and lambdas in them."""
    todo = list(statements)
    while todo:
        node = todo.pop()
        yield node
        if isinstance(node, _SCOPES):
            todo += _evaluated_outside(node)
        else:
            todo += ast.iter_child_nodes(node)


def has_private_names(nodes: Iterable[ast.AST]) -> bool:
    """Whether ``nodes`` have names that a class changes (`self.__x`), which a part of its method compiled without the class
    would not find."""
    return any(_is_private(node) for one in nodes for node in ast.walk(one))


def _is_private(node: ast.AST) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name.startswith("__") and not name.endswith("__")


def _evaluated_outside(node: ast.AST) -> list[ast.AST]:
    """What a definition evaluates in the scope that it stands in."""
    if isinstance(node, ast.ClassDef):
        return [*node.decorator_list, *node.bases, *(keyword.value for keyword in node.keywords)]
    arguments = node.args  # type: ignore[attr-defined]
    defaults = [*arguments.defaults, *(default for default in arguments.kw_defaults if default is not None)]
    if isinstance(node, ast.Lambda):
        return defaults
    parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    annotations = [one.annotation for one in parameters if one is not None and one.annotation is not None]
    return [*node.decorator_list, *defaults, *annotations, *([node.returns] if node.returns else [])]  # type: ignore[attr-defined]


def bound_names(statements: Iterable[ast.AST]) -> set[str]:
    """Names that ``statements`` bind or delete in the scope that they stand in."""
    names: set[str] = set()
    in_comprehensions: set[int] = set()
    for node in own_nodes(statements):
        match node:
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                in_comprehensions |= {id(one) for part in node.generators for one in ast.walk(part.target)}
            case ast.Name(ctx=ast.Store() | ast.Del()) if id(node) not in in_comprehensions:
                names.add(node.id)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names.add(node.name)
            case ast.Import() | ast.ImportFrom():
                names |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                names.add(name)
            case ast.MatchMapping(rest=str(name)):
                names.add(name)
    return names


def global_names(statements: Iterable[ast.stmt]) -> set[str]:
    """Names that ``statements`` declare global."""
    return {name for node in own_nodes(statements) if isinstance(node, ast.Global) for name in node.names}
