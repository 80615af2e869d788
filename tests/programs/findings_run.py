"""Runs programs of the findings corpus, one after the other in this process, with the runner's own discovery of regions.

``python -m tests.programs.findings_run ANSWER NAME...`` writes what was found to the file ANSWER, as JSON. The process is of
no further use: discovery patches torch, and programs leave things behind. Key function: ``run``.
"""

from __future__ import annotations

import ast
import json
import os
import sys
import tempfile
import traceback
import types
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from magpy_core.findings import Finding, Report
from magpy_core.products.targets.kernels import session_kernels
from magpy_core.regions.region import Region
from magpy_core.regions.session import Session
from magpy_core.runner.discovery import Discovery
from magpy_core.runner.monitoring import Monitoring
from magpy_core.runner.steps import StepClock
from tests.programs.findings_help import FOLDER, LIBRARIES, Program


class _Silent:
    """A channel to nobody."""

    open = False

    def send(self, message: dict[str, Any]) -> None:
        pass


class Corpus:
    """The patched torch of this process."""

    def __init__(self) -> None:
        self._request = {"mode": "check", "call_policy": {}, "file": __file__}
        self._clock = StepClock(0)
        self._monitoring = Monitoring(self._request, _Silent(), self._clock)  # type: ignore[arg-type]
        self._discovery = Discovery(self._monitoring)
        self._discovery.install()
        self.report = Report("")
        """The regions of the last program, and their kernels on the target that it names."""

    def run(self, program: Program) -> list[Finding]:
        """Run it as ``__main__`` and give what was found. The program's own exceptions are raised."""
        mode: Any = "compiled" if program.settings.get("mode") == "compiled" else "observe"
        backend = program.settings.get(
            "backend", "eager" if mode == "compiled" else "inductor"
        )  # as ``check``: not compiled
        session = Session(mode=mode, backend=backend, measure=mode == "compiled")
        self._request["mode"] = "run" if mode == "compiled" else "check"
        self._monitoring.use(session)
        self._clock.optimizer_steps = self._clock.module_calls = 0
        self._clock.has_optimizer = False
        self._clock.on_step = session.stepped if "steps" in program.settings else lambda n: None
        self._monitoring.active = True
        self._discovery._names.clear()  # regions are numbered within a program
        with _as_main(program.path) as module:
            module.__dict__["__region__"] = lambda function: self._discovery.wrap(function, function.__name__)
            exec(_compiled(program), module.__dict__)
        for region in session.regions if "measured" in program.settings else ():
            _set_times(region, dict(part.split("=") for part in program.settings["measured"].split()))
        session.finish()
        kernels = session_kernels(session, program.settings["target"]) if "target" in program.settings else None
        summaries = [region.summary() for region in session.regions]
        self.report = Report(str(program.path), summaries, steps=session.current_step, kernels=kernels)
        return [*session.findings, *self._own_findings()]

    def _own_findings(self) -> list[Finding]:
        """What the runner itself had to say of the last program."""
        said, self._monitoring._findings = self._monitoring._findings, []
        return said


def _compiled(program: Program) -> types.CodeType:
    tree = ast.parse(program.text, str(program.path))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.lineno in program.marked:
            name = ast.Name("__region__", ast.Load())
            node.decorator_list.append(ast.copy_location(name, node))  # on the def's own line: no line changes
    return compile(ast.fix_missing_locations(tree), str(program.path), "exec")


@contextmanager
def _as_main(path: Path) -> Iterator[types.ModuleType]:
    """The state of the process that a program sees and may change, put back after it."""
    main, search, folder = sys.modules["__main__"], list(sys.path), os.getcwd()
    dtype, grad, environment = torch.get_default_dtype(), torch.is_grad_enabled(), dict(os.environ)
    module = types.ModuleType("__main__")
    module.__file__ = str(path)
    sys.modules["__main__"] = module
    sys.path[:0] = [str(FOLDER), str(LIBRARIES)]
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        try:
            yield module
        finally:
            os.chdir(folder)
            sys.path[:] = search
            sys.modules["__main__"] = main
            for name, loaded in list(sys.modules.items()):
                if str(getattr(loaded, "__file__", None) or "").startswith(str(FOLDER) + os.sep):
                    del sys.modules[name]
            torch.set_default_dtype(dtype)
            torch.set_grad_enabled(grad)
            os.environ.clear()
            os.environ.update(environment)


def _set_times(region: Region, times: dict[str, str]) -> None:
    """What a machine would measure, so that the verdict can be tested on any machine."""
    assert region.times.calls.eager and region.times.calls.compiled, "it was not measured at all"
    region.times.calls.eager = [float(times["eager_s"])] * len(region.times.calls.eager)
    region.times.calls.compiled = [float(times["compiled_s"])] * len(region.times.calls.compiled)
    region.times.guard = []
    for capture in region.captures:
        capture._graphs.compile_seconds = float(times["compile_s"])


def run(programs: Iterable[Program], done: Callable[[Program, dict[str, Any]], None]) -> None:
    """Run each; ``done`` gets its findings and its regions, or the traceback of what it raised."""
    corpus = Corpus()
    for program in programs:
        try:
            found = {"findings": [f.to_json() for f in corpus.run(program)], "error": "", "report": corpus.report.to_json()}
        except Exception:
            found = {"findings": [], "error": traceback.format_exc(limit=-4), "report": Report("").to_json()}
        done(program, found)


def main() -> None:
    answer, *names = sys.argv[1:]
    with open(answer, "w", encoding="utf-8") as out:

        def done(program: Program, found: dict[str, Any]) -> None:
            out.write(json.dumps({"name": program.path.stem, **found}) + "\n")
            out.flush()  # a program that takes the process down is the one after the last line

        run((Program.read(FOLDER / f"{name}.py") for name in names), done)


if __name__ == "__main__":
    main()
