"""Runs a program of the findings corpus in this process, its regions found by a small stand-in for the runner's discovery.

A program is a user's script with the findings it should get written on its lines: ``# expect: MP102, MP301 @8-20``
(the columns, 0-based, are of the codes of that comment). Functions marked ``# region`` on their ``def`` line and every
outermost call of a module are regions. Comments at the top choose how it runs: see :class:`Program`.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType
from typing import Any

from torch import nn

from magpy_core._compat.call_context import in_tracer
from magpy_core.findings import Finding
from magpy_core.runner import naming
from magpy_core.runtime.region import Region
from magpy_core.runtime.session import Session

_CALL = nn.Module.__call__
_EXPECT = re.compile(r"# expect: (?P<codes>MP\d{3}(?:, MP\d{3})*)(?: @(?P<start>\d+)-(?P<end>\d+))?")
_SETTING = re.compile(r"# (?P<name>mode|backend|run|measured): (?P<value>.*)")


@dataclass(frozen=True, order=True)
class Expected:
    """One finding a line should get; the columns are None where the comment names none."""

    line: int
    code: str
    start: int | None = None
    end: int | None = None


@dataclass
class Program:
    """``settings``: ``mode`` (observe, compiled), ``backend``, ``run`` (process: this one; cli: ``magpy-lsp check``),
    ``measured`` (times that replace the measured ones)."""

    path: Path
    text: str = ""
    expected: list[Expected] = field(default_factory=list)
    marked: set[int] = field(default_factory=set)
    settings: dict[str, str] = field(default_factory=dict)

    @staticmethod
    def read(path: Path) -> Program:
        program = Program(path, path.read_text(encoding="utf-8"))
        for token in tokenize.generate_tokens(io.StringIO(program.text).readline):
            if token.type != tokenize.COMMENT:
                continue
            line = token.start[0]
            for found in _EXPECT.finditer(token.string):
                start, end = found["start"], found["end"]
                program.expected += [
                    Expected(line, code, int(start) if start else None, int(end) if end else None)
                    for code in found["codes"].split(", ")
                ]
            if "# region" in token.string:
                program.marked.add(line)
            if setting := _SETTING.fullmatch(token.string):
                program.settings[setting["name"]] = setting["value"]
        return program

    @property
    def in_child(self) -> bool:
        return self.settings.get("run") == "cli"


def run(program: Program) -> list[Finding]:
    """Run it, as ``__main__`` would be, and give what was found. The program's own exceptions are raised."""
    session = Session(
        mode="compiled" if program.settings.get("mode") == "compiled" else "observe",
        backend=program.settings.get("backend", "eager"),
        measure=True,
    )
    tree = ast.parse(program.text, str(program.path))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.lineno in program.marked:
            name = ast.Name("__region__", ast.Load())
            node.decorator_list.append(ast.copy_location(name, node))  # on the def's own line: no line changes
    names = {"__name__": "__main__", "__file__": str(program.path), "__region__": _decorator(session, program.path)}
    with _modules_are_regions(session):
        exec(compile(ast.fix_missing_locations(tree), str(program.path), "exec"), names)
    for region in session.regions if "measured" in program.settings else ():
        _set_times(region, dict(part.split("=") for part in program.settings["measured"].split()))
    session.finish()
    return session.findings


def _set_times(region: Region, times: dict[str, str]) -> None:
    """What a machine would measure, so that the verdict can be tested on any machine."""
    assert region.eager_seconds and region.compiled_seconds, "it was not measured at all"
    region.eager_seconds = [float(times["eager_s"])] * len(region.eager_seconds)
    region.compiled_seconds = [float(times["compiled_s"])] * len(region.compiled_seconds)
    region.guard_seconds = []
    for capture in region.captures:
        capture.compile_seconds = float(times["compile_s"])


def _decorator(session: Session, path: Path) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def mark(function: Callable[..., Any]) -> Callable[..., Any]:
        code = function.__code__
        region = session.region(
            function, kind="function", name=function.__name__, file=str(path), line=code.co_firstlineno, target=function
        )

        def call(*args: Any, **kwargs: Any) -> Any:
            with _unpatched():
                return region(*args, **kwargs)

        call.__code__ = _hidden(call)
        return call

    return mark


def _hidden(function: Any) -> CodeType:
    """Our own code between the user's, without a file: findings take it for no one's."""
    code: CodeType = function.__code__
    return code.replace(co_filename="<harness>")


@contextmanager
def _modules_are_regions(session: Session) -> Iterator[None]:
    kept: list[nn.Module] = []  # a region's key is its module's id

    def call(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
        if in_tracer():
            return _CALL(module, *args, **kwargs)
        kept.append(module)
        place = naming.definition_of(type(module).forward) or naming.call_site(naming.user_frame(sys._getframe(1)))
        name = type(module).__name__
        region = session.region(id(module), kind="module", name=name, file=place[0], line=place[1], target=_CALL)
        with _unpatched():
            return region(module, *args, **kwargs)

    call.__code__ = _hidden(call)
    nn.Module.__call__ = call  # type: ignore[method-assign]
    try:
        yield
    finally:
        nn.Module.__call__ = _CALL  # type: ignore[method-assign]


@contextmanager
def _unpatched() -> Iterator[None]:
    """Inside a region modules are called as ever."""
    patched = nn.Module.__call__
    nn.Module.__call__ = _CALL  # type: ignore[method-assign]
    try:
        yield
    finally:
        nn.Module.__call__ = patched  # type: ignore[method-assign]
