"""Detects whether a file is an entrypoint. Key functions: entrypoint_line, is_not_imported.

An entrypoint is a module with ``if __name__ == "__main__":`` among its top-level statements, or one that imports
torch and does work at top level. "Work" is a loop that calls something, a call of a function or class defined in
the file, or a call on an object created at top level. Configuration that libraries do on import
(``torch.manual_seed(0)``, ``logger.setLevel(...)``, constants) is not work.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator, Sequence

_BESIDE, _LONGEST = 200, 1_000_000
_MAIN_LINE = re.compile(r"""if\s+\(?\s*(__name__\s*==\s*(['"])__main__\2|(['"])__main__\3\s*==\s*__name__)""")
# Objects that libraries create and configure when imported.
_CONFIGURED = frozenset({"getLogger", "get_logger", "TypeVar", "ParamSpec", "namedtuple", "Lock", "RLock", "local"})
_CONTAINERS = frozenset({"dict", "list", "set", "tuple", "frozenset", "defaultdict", "OrderedDict", "Counter", "deque"})


def entrypoint_line(lines: Sequence[str]) -> int | None:
    """The 0-based line for the code lenses, or None if the file is not an entrypoint."""
    try:
        module = ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # Invalid syntax: fall back to the one line that can be recognized without a parser.
        return next((i for i, line in enumerate(lines) if _MAIN_LINE.match(line)), None)
    statements = list(_top_level(module.body))
    for statement in statements:
        if isinstance(statement, ast.If) and _tests_main(statement.test):
            return statement.lineno - 1
    if _imports_torch(statements) and _does_work(statements):
        return 0
    return None


def is_not_imported(path: str, lines: Sequence[str]) -> bool:
    """Whether a file is a program that no Python file in its folder imports, so only itself uses its definitions."""
    if entrypoint_line(lines) is None:
        return False
    folder, name = os.path.split(path)
    stem = re.escape(name.removesuffix(".py"))
    imported = re.compile(rf"^\s*(?:from|import)\s[^#\n]*(?<!\w){stem}(?!\w)", re.MULTILINE)
    try:
        others = [entry.path for entry in os.scandir(folder) if entry.name.endswith(".py") and entry.name != name]
        if len(others) > _BESIDE:
            return False  # a large folder is a package rather than a program
        for other in others:
            with open(other, encoding="utf-8", errors="replace") as stream:
                if imported.search(stream.read(_LONGEST)):
                    return False
    except OSError:
        return False
    return True


def _top_level(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements that run with the module, including those inside if/try/with."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.If):
            if not _tests_main(statement.test):
                yield from _top_level(statement.body)
            yield from _top_level(statement.orelse)
        elif isinstance(statement, ast.Try):
            yield from _top_level(statement.body)
            for handler in statement.handlers:
                yield from _top_level(handler.body)
            yield from _top_level(statement.orelse)
            yield from _top_level(statement.finalbody)
        elif isinstance(statement, ast.With):
            yield from _top_level(statement.body)


def _tests_main(test: ast.expr) -> bool:
    if isinstance(test, ast.BoolOp):
        return any(_tests_main(value) for value in test.values)
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq):
        return False
    sides = (test.left, test.comparators[0])
    named = any(isinstance(s, ast.Name) and s.id == "__name__" for s in sides)
    return named and any(isinstance(s, ast.Constant) and s.value == "__main__" for s in sides)


def _imports_torch(statements: Sequence[ast.stmt]) -> bool:
    for statement in statements:
        if isinstance(statement, ast.Import):
            if any(alias.name.split(".")[0] == "torch" for alias in statement.names):
                return True
        elif isinstance(statement, ast.ImportFrom) and statement.level == 0:
            if (statement.module or "").split(".")[0] == "torch":
                return True
    return False


def _does_work(statements: Sequence[ast.stmt]) -> bool:
    workers: set[str] = set()  # names whose call, or whose attribute's call, is work
    for statement in statements:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            workers.add(statement.name)
        elif isinstance(statement, (ast.For, ast.AsyncFor, ast.While)):
            if any(isinstance(node, ast.Call) for node in ast.walk(statement)):
                return True
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            if _root_name(statement.value.func) in workers:
                return True
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)) and isinstance(statement.value, ast.Call):
            called = _last_name(statement.value.func)
            if called in _CONFIGURED or called in _CONTAINERS:
                continue
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            workers.update(n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name))
    return False


def _root_name(callee: ast.expr) -> str | None:
    while isinstance(callee, (ast.Attribute, ast.Call, ast.Subscript)):
        callee = callee.func if isinstance(callee, ast.Call) else callee.value
    return callee.id if isinstance(callee, ast.Name) else None


def _last_name(callee: ast.expr) -> str | None:
    if isinstance(callee, ast.Attribute):
        return callee.attr
    return callee.id if isinstance(callee, ast.Name) else None
