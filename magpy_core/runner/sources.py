"""Compiles the program's modules from source, with what MagPy changes in them. Key type: Sources.

Line numbers, `inspect.getsource` and the modules' names do not change, and nothing is written into `__pycache__`.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import CodeType, ModuleType

from magpy_core.runner.loops import Loops
from magpy_core.runner.named import NamedRegions
from magpy_core.runner.tracebacks import is_user
from magpy_core.stretches.loops import may_train


class Sources:
    """A meta path finder. ``loops``: None if they stay as they are."""

    def __init__(self, named: NamedRegions, loops: Loops | None) -> None:
        self._named, self._loops = named, loops

    def compile(self, source: bytes, filename: str, module: str = "__main__") -> CodeType:
        """Like the built-in ``compile`` of a module."""
        wanted = self._named.wanted(module)
        cuts = self._loops is not None and is_user(filename) and may_train(source)
        if not wanted and not cuts:
            return compile(source, filename, "exec", dont_inherit=True)
        tree = ast.parse(source, filename)
        finish = self._loops.cut(tree, source, filename) if cuts and self._loops is not None else None
        if wanted:
            self._named.mark(tree, wanted)
        code = compile(tree, filename, "exec", dont_inherit=True)
        if finish is not None:
            code = finish(code)
        return self._named.replace_marks(code, wanted) if wanted else code

    def install(self) -> None:
        if self._named.names or self._loops is not None:
            sys.meta_path.insert(0, self)

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        wanted = self._named.is_main(name) or bool(self._named.wanted(name))
        if not wanted and self._loops is None:
            return None
        finders = list(sys.meta_path)
        others = (finder for finder in finders if finder is not self and hasattr(finder, "find_spec"))
        spec = next(filter(None, (finder.find_spec(name, path, target) for finder in others)), None)
        if spec is not None and type(spec.loader) is SourceFileLoader and (wanted or is_user(spec.loader.path)):
            self._instrument(spec.loader)
        return spec

    def _instrument(self, loader: SourceFileLoader) -> None:
        def get_code(name: str) -> CodeType | None:
            del loader.get_code  # removes the instance's attribute: the class's method is used again
            # Called by runpy, to run as ``__main__`` and not to be imported under its own name?
            runs = self._named.is_main(name) and sys._getframe(1).f_globals.get("__name__") == "runpy"
            module = "__main__" if runs else name
            source = loader.get_data(loader.path)
            if not self._named.wanted(module) and not (self._loops is not None and may_train(source)):
                return loader.get_code(name)
            return self.compile(source, loader.path, module)

        loader.get_code = get_code  # type: ignore[method-assign,assignment]
