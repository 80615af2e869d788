"""Regions named in ``[tool.magpy] regions``. Key type: NamedRegions.

A named function is wrapped as soon as its ``def`` has run, so that whatever the module does with it next (calls it, stores
it, passes it on) sees the wrapper. For this, an outermost decorator is added to the parsed source of the module, at the
position of the definition: line numbers, ``inspect.getsource`` and the module's names do not change. The decorator is a
constant of the compiled code (inserted after compiling), so no name is added to the module or to builtins. Plain
``name = value`` statements are wrapped the same way.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Collection, Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import CodeType, ModuleType
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
    """Compiles modules so that the functions named in ``names`` are replaced by ``wrap(function, dotted name)``.

    ``aliases`` are names by which the user may mean ``__main__`` (the script's stem, the module given to ``-m``).
    """

    def __init__(self, names: Sequence[str], wrap: Callable[[Any, str], Any], aliases: Sequence[str] = ()) -> None:
        self.names = list(dict.fromkeys(names))
        self.found: set[str] = set()
        self._wrap = wrap
        self._aliases = ("__main__", *aliases)

    def _wanted(self, module: str) -> dict[str, str]:
        """Qualified name in ``module`` -> the dotted name the user wrote."""
        prefixes = self._aliases if module == "__main__" else (module,)
        return {n.removeprefix(p + "."): n for n in self.names for p in prefixes if n.startswith(p + ".")}

    def compile(self, source: bytes, filename: str, module: str = "__main__") -> CodeType:
        """Like the built-in ``compile`` of a module, with the named definitions wrapped."""
        wanted = self._wanted(module)
        if not wanted:
            return compile(source, filename, "exec", dont_inherit=True)
        tree = ast.parse(source, filename)
        _mark(tree, wanted)
        return self._replace_marks(compile(tree, filename, "exec", dont_inherit=True), wanted)

    def _replace_marks(self, code: CodeType, wanted: dict[str, str]) -> CodeType:
        consts: list[Any] = []
        for const in code.co_consts:
            if isinstance(const, CodeType):
                const = self._replace_marks(const, wanted)
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

    # A meta path finder: modules other than the script itself are compiled above as they are imported.

    def install(self) -> None:
        if self.names:
            sys.meta_path.insert(0, self)

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        as_main = name in self._aliases or name.removesuffix(".__main__") in self._aliases
        if not as_main and not self._wanted(name):
            return None
        others = (finder for finder in sys.meta_path if finder is not self and hasattr(finder, "find_spec"))
        spec = next(filter(None, (finder.find_spec(name, path, target) for finder in others)), None)
        if spec is not None and type(spec.loader) is SourceFileLoader:
            self._instrument(spec.loader)
        return spec

    def _instrument(self, loader: SourceFileLoader) -> None:
        def get_code(name: str) -> CodeType:
            del loader.get_code  # removes the instance's attribute: the class's method is used again
            # Called by runpy, to run as ``__main__`` and not to be imported under its own name?
            runs = name in self._aliases and sys._getframe(1).f_globals.get("__name__") == "runpy"
            return self.compile(loader.get_data(loader.path), loader.path, "__main__" if runs else name)

        loader.get_code = get_code  # type: ignore[method-assign,assignment]
