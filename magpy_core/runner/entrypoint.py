"""Runs the user's entrypoint as Python does. Key types: Entrypoint, Refused.

``python script.py``, ``python folder/``, ``python app.zip``, ``python file.pyc`` and ``python -m package.module``: same
``__main__`` (the interpreter's own module object), ``sys.argv``, ``sys.path[0]``, ``__file__``, ``__spec__``.
"""

from __future__ import annotations

import builtins
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib.machinery import PathFinder, SourceFileLoader, SourcelessFileLoader
from types import CodeType
from typing import Any

from magpy_core._compat.cpython.run_as_main import run_module_as_main, was_not_found


class Refused(Exception):
    """The program can't be run; the message says what to do."""

    def __init__(self, message: str, code: str = "MP908") -> None:
        super().__init__(message)
        self.code = code


class Entrypoint:
    """``prepare`` sets up the interpreter's state as before the user's first line; ``run`` runs the program.

    ``bad_source``: the error that Python shows because the script's source does not compile.
    """

    def __init__(self, script: str | None, module: str | None, args: list[str]) -> None:
        self.script, self.module, self.args = script, module, args
        self._code: CodeType | None = None
        self._importer = False
        self.bad_source: Exception | None = None
        self.file = os.path.join(os.getcwd(), script) if script is not None else ""

    @property
    def stem(self) -> str:
        """The name under which other modules would import this one."""
        if self.module is not None:
            return self.module
        return os.path.splitext(os.path.basename(str(self.script)))[0]

    def prepare(self, compiler: Callable[[bytes, str], CodeType], path: list[str], at_start: list[str]) -> None:
        """Prepares without running user code; raises Refused. ``path``: ``sys.path`` without the program's own folder;
        ``at_start``: names of the modules that were there before any of ours."""
        if self.script is not None:
            self._prepare_script(self.script, compiler)
            sys.orig_argv = [sys.orig_argv[0], self.script, *self.args]
            sys.argv[:] = [self.script, *self.args]
            first = self.file if self._importer else os.path.dirname(os.path.realpath(self.script))
        else:
            assert self.module is not None
            if not self.module or self.module.startswith("."):
                raise Refused(f"{self.module!r} is not a module name: -m takes a dotted name such as package.module.")
            if os.sep in self.module or (self.module.endswith(".py") and os.path.exists(self.module)):
                raise Refused(f"{self.module} is a file, and -m takes a module name: use the file without -m.")
            sys.orig_argv = [sys.orig_argv[0], "-m", self.module, *self.args]
            sys.argv[:] = ["-m", *self.args]
            first = os.getcwd()
        sys.path[:] = [first, *path] if self._importer or not sys.flags.safe_path else path
        _forget_shadowed(at_start)

    def _prepare_script(self, script: str, compiler: Callable[[bytes, str], CodeType]) -> None:
        if not os.path.exists(script):
            raise Refused(f"{script} does not exist: check the path (it is relative to {os.getcwd()}).")
        if _importable(self.file):
            self._importer = True
            if os.path.isdir(script) and not any(os.path.exists(os.path.join(script, f"__main__.py{c}")) for c in ("", "c")):
                raise Refused(f"{script} is a folder without __main__.py: name a script in it, or run a module with -m.")
            return
        try:
            with open(script, "rb") as f:
                data = f.read()
        except OSError as exc:
            raise Refused(f"{script} can't be read ({exc.strerror}): fix its permissions or name another file.") from None
        try:
            self._code = self._read_compiled(script) if script.endswith(".pyc") else compiler(data, self.file)
        except Refused:
            raise
        except (SyntaxError, ValueError) as exc:  # ValueError: null bytes, on 3.11.0 to 3.11.3
            self.bad_source = _as_interpreter_error(exc, data, self.file)
        except Exception as exc:  # Python's own limits: RecursionError, MemoryError, OverflowError
            self.bad_source = exc

    def _read_compiled(self, script: str) -> CodeType | None:
        try:
            return SourcelessFileLoader("__main__", self.file).get_code("__main__")
        except ImportError:
            version = ".".join(map(str, sys.version_info[:2]))
            advice = "use its source, or choose its Python with --python"
            raise Refused(f"{script} was not compiled by Python {version}: {advice}.") from None
        except (EOFError, ValueError, TypeError) as exc:
            raise Refused(f"{script} is damaged ({exc}): use its source, or compile it again.") from None

    def run(self) -> None:
        """Runs the user's code to its end or its exception."""
        if self.bad_source is not None:
            raise self.bad_source
        if self._code is None:
            name = self.module if self.module is not None else "__main__"
            try:
                run_module_as_main(name, alter_argv=self.module is not None)
            except SystemExit as exc:
                if not was_not_found(exc.__traceback__):
                    raise
                raise Refused(self._not_found(str(exc.code))) from None
            return
        loader: Any = SourcelessFileLoader if self.file.endswith(".pyc") else SourceFileLoader
        namespace = sys.modules["__main__"].__dict__
        namespace["__file__"] = self.file
        namespace["__cached__"] = None
        namespace["__loader__"] = loader("__main__", self.file)
        try:
            builtins.exec(self._code, namespace)
        finally:
            namespace.pop("__file__", None)  # as CPython does when the script is done
            namespace.pop("__cached__", None)

    def _not_found(self, said: str) -> str:
        said = said.removeprefix(f"{sys.executable}: ").partition(". Try using")[0].rstrip(".")
        if self.module is None:
            return f"{self.script} can't be run: {said}; name a script in it, or run a module with -m."
        if "is a package and cannot be directly executed" in said:
            return f"{said}: add a __main__.py to it, or name one of its modules."
        return f"{said}: check the name, and run from the folder that contains it (now {os.getcwd()})."


def _forget_shadowed(at_start: list[str]) -> None:
    """Modules that we have imported don't stand in for those of the same name that the program would find first."""
    ours = {name.partition(".")[0] for name in sys.modules.keys() - at_start}
    shadowed = set()
    for name in ours - {"magpy_core"}:
        loaded = getattr(sys.modules.get(name), "__spec__", None)
        found = PathFinder.find_spec(name)
        if found is not None and loaded is not None and loaded.has_location and found.origin != loaded.origin:
            shadowed.add(name)
    for name in [name for name in sys.modules if name.partition(".")[0] in shadowed]:
        del sys.modules[name]


def _importable(path: str) -> bool:
    """Whether modules can be imported from ``path``: a folder or a zip file."""
    for hook in sys.path_hooks:
        with suppress(ImportError):
            hook(path)
            return True
    return False


def _as_interpreter_error(exc: Exception, data: bytes, filename: str) -> SyntaxError:
    """The error with the interpreter's message for a file, which sometimes differs from that of ``compile``."""
    if b"\0" in data:
        before = data.split(b"\0")[0].split(b"\n")
        if (bad := _not_utf8(b"\n".join(before), filename)) is not None:
            return bad  # Python reads line by line
        text = before[-1].decode("utf-8", "replace")
        return SyntaxError("source code cannot contain null bytes", (filename, len(before), 0, text))
    error = exc if isinstance(exc, SyntaxError) else SyntaxError(str(exc))
    said = str(error.msg)
    if said.startswith("(unicode error) 'utf-8' codec can't decode"):
        return _not_utf8(data, filename) or error
    if said.startswith(("unknown encoding: ", "encoding problem: ")):
        return SyntaxError(f"encoding problem: {said.partition(': ')[2]}")
    return error


def _not_utf8(data: bytes, filename: str) -> SyntaxError | None:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as bad:
        line = data.count(b"\n", 0, bad.start) + 1
        return SyntaxError(
            f"Non-UTF-8 code starting with '\\x{data[bad.start]:02x}' in file {filename} on line {line}, "
            "but no encoding declared; see https://peps.python.org/pep-0263/ for details"
        )
    return None
