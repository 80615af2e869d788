"""Compiles the program's modules from source, with what MagPy changes in them. Key type: Sources.

Line numbers, `inspect.getsource` and the modules' names do not change, and nothing is written into `__pycache__`.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import CodeType, ModuleType
from typing import Protocol

from magpy_core._compat.torch.warning_filters import no_warnings
from magpy_core.runner.loops import Loops
from magpy_core.runner.named import NamedRegions
from magpy_core.runner.tracebacks import is_ours, is_user
from magpy_core.stretches.loops import may_train

_DEEP_HINT = "Move the long chain of `elif`, or the expression with hundreds of terms, to another file."


class AddFinding(Protocol):
    def __call__(self, code: str, message: str, *, file: str, hint: str = "") -> None: ...


def _compiled(source: bytes, filename: str) -> CodeType:
    """Compiled as Python does. For the script itself, there are frames of the runner below, which count as nesting."""
    frames = _frames_below_the_script()
    if not frames:
        return compile(source, filename, "exec", dont_inherit=True)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(limit + frames)
    try:
        return compile(source, filename, "exec", dont_inherit=True)
    finally:
        sys.setrecursionlimit(limit)


def _frames_below_the_script() -> int:
    """The number of frames, if none of them is the program's; otherwise 0."""
    frame, count = sys._getframe(), 0
    while frame.f_back is not None and is_ours(frame.f_code.co_filename):
        frame, count = frame.f_back, count + 1
    return count + 1 if frame.f_back is None else 0


class Sources:
    """A meta path finder. ``loops``: None if they stay as they are."""

    def __init__(self, named: NamedRegions, loops: Loops | None) -> None:
        self._named, self._loops = named, loops
        self._failures: list[tuple[str, str, Exception]] = []
        self._add: AddFinding | None = None

    def compile(self, source: bytes, filename: str, module: str = "__main__") -> CodeType:
        """Like the built-in ``compile`` of a module: what it raises and warns of is Python's own. Source that can't be
        analysed is compiled as it is."""
        plain = _compiled(source, filename)
        wanted = self._named.wanted(module)
        cuts = self._loops is not None and is_user(filename) and may_train(source)
        if cuts and (code := self._changed(plain, source, filename, wanted, self._loops)) is not None:
            return code
        return (self._changed(plain, source, filename, wanted, None) if wanted else None) or plain

    def _changed(
        self, plain: CodeType, source: bytes, filename: str, wanted: dict[str, str], loops: Loops | None
    ) -> CodeType | None:
        """The code with the named regions and the cut loops; None if the analysis fails, which is reported."""
        try:
            with no_warnings():  # of the source: Python has given them
                tree = ast.parse(source, filename)
                finish = None if loops is None else loops.cut(tree, plain, filename)
                if wanted:
                    self._named.mark(tree, wanted)
                code = compile(tree, filename, "exec", dont_inherit=True)
            code = code if finish is None else finish(code)
            return self._named.replace_marks(code, wanted) if wanted else code
        except (
            Exception
        ) as error:  # trees are walked by recursion, and sources may be as deep as Python's own compiler allows
            self._failures.append((filename, "training loops" if loops is not None else "named functions", error))
            self._report_failures()
            return None

    def report_to(self, add: AddFinding) -> None:
        """What findings go to: those on the script itself wait until there is a report."""
        self._add = add
        self._report_failures()

    def _report_failures(self) -> None:
        while self._add is not None and self._failures:
            file, what, error = self._failures.pop(0)
            if isinstance(error, RecursionError):
                text = f"The {what} in this file are not compiled as a whole: its source is nested too deeply for MagPy."
                self._add("MP406", text, file=file, hint=_DEEP_HINT)
            else:
                why = f"{type(error).__name__}: {error}"
                self._add("MP901", f"MagPy could not look for the {what} in this file ({why}).", file=file)

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
