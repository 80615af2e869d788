"""Regions named in ``[tool.magpy] regions``. Key type: NamedRegions.

A named function is wrapped as soon as its ``def`` has run, so that whatever the module does with it next (calls it, stores
it, passes it on) sees the wrapper. For this, an outermost decorator is added to the parsed source of the module, at the
position of the definition: line numbers, ``inspect.getsource`` and the module's names do not change. The decorator is a
constant of the compiled code (inserted after compiling), so no name is added to the module or to builtins. Plain
``name = value`` statements are wrapped the same way.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Sequence
from types import CodeType
from typing import Any

_MARK = "magpy named region: "


def _mark(tree: ast.AST, wanted: Collection[str], outer: str = "") -> None:
    """Marks definitions with a wanted qualified name. Skips function bodies: a nested function is created at each call and
    has no dotted name."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef):
            if outer + node.name in wanted:
                first: ast.AST = node.decorator_list[0] if node.decorator_list else node
                node.decorator_list.insert(0, ast.copy_location(ast.Constant(_MARK + outer + node.name), first))
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name) and outer + target.id in wanted:
                    mark = ast.copy_location(ast.Constant(_MARK + outer + target.id), node.value)
                    # An operator, not a call: calling a constant causes a SyntaxWarning.
                    node.value = ast.copy_location(ast.BinOp(mark, ast.MatMult(), node.value), node.value)
        elif not isinstance(node, ast.AsyncFunctionDef):
            _mark(node, wanted, f"{outer}{node.name}." if isinstance(node, ast.ClassDef) else outer)


class _Decorator:
    """The constant that wraps a marked definition: ``@<this>`` above a ``def``, or ``name = <this> @ value``."""

    def __init__(self, regions: NamedRegions, dotted: str) -> None:
        self._regions, self._dotted = regions, dotted

    def __call__(self, value: Any) -> Any:
        return self._regions.decorate(value, self._dotted)

    __matmul__ = __call__


class NamedRegions:
    """Changes modules so that the functions named in ``names`` are replaced by ``wrap(function, dotted name)``.

    ``aliases`` are names by which the user may mean ``__main__`` (the script's stem, the module given to ``-m``).
    """

    def __init__(self, names: Sequence[str], wrap: Callable[[Any, str], Any], aliases: Sequence[str] = ()) -> None:
        self.names = list(dict.fromkeys(names))
        self.found: set[str] = set()
        self._wrap = wrap
        self._aliases = ("__main__", *aliases)

    def wanted(self, module: str) -> dict[str, str]:
        """Qualified name in ``module`` -> the dotted name the user wrote."""
        prefixes = self._aliases if module == "__main__" else (module,)
        return {n.removeprefix(p + "."): n for n in self.names for p in prefixes if n.startswith(p + ".")}

    @staticmethod
    def mark(tree: ast.Module, wanted: Collection[str]) -> None:
        """Marks the definitions of ``wanted`` in ``tree``."""
        _mark(tree, wanted)

    def replace_marks(self, code: CodeType, wanted: dict[str, str]) -> CodeType:
        """The compiled code of a marked tree, with the functions that wrap the definitions."""
        consts: list[Any] = []
        for const in code.co_consts:
            if isinstance(const, CodeType):
                const = self.replace_marks(const, wanted)
            elif isinstance(const, str) and const.startswith(_MARK):
                const = _Decorator(self, wanted[const.removeprefix(_MARK)])
            consts.append(const)
        return code.replace(co_consts=tuple(consts))

    def decorate(self, value: Any, dotted: str) -> Any:
        """The replacement of ``value``, just defined under the name ``dotted``."""
        if isinstance(value, staticmethod | classmethod):
            return type(value)(self.decorate(value.__func__, dotted))
        wrapped = self._wrap(value, dotted)
        if wrapped is not value:
            self.found.add(dotted)
        return wrapped

    def missing(self) -> list[str]:
        """Names that no executed definition has matched."""
        return [n for n in self.names if n not in self.found]

    def is_main(self, module: str) -> bool:
        """Whether a module of this name may be the program itself."""
        return module in self._aliases or module.removesuffix(".__main__") in self._aliases
