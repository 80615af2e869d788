"""The engines under test, and the judgement of one case under one of them. Key types: Engine, Case."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

import magpy_core
from benchmarks.sweeps.child import Verdict, sentence
from benchmarks.sweeps.compare import Observed, difference, observe

ENGINES = ("magpy", "dynamo")


@dataclass(frozen=True)
class Case:
    """A module to build, fresh inputs for a call of it, and its mode."""

    build: Callable[[], nn.Module]
    inputs: Callable[[], Any]
    train: bool = False

    def observe(self, wrap: Callable[[nn.Module], Any]) -> Observed:
        return observe(self.build, self.inputs, wrap, train=self.train)


def plain(module: nn.Module) -> Any:
    """No engine."""
    return module


class Engine:
    """How an engine wraps a module, and the exceptions by which it says that it would not take a call whole."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.breaks: tuple[type[BaseException], ...] = (magpy_core.GraphBreak,)
        if name == "dynamo":
            import torch._dynamo.exc as exc

            self.breaks = (exc.TorchDynamoException,)

    def wrap(self, module: nn.Module) -> Any:
        if self.name == "magpy":
            return magpy_core.compile(module, backend="eager", fullgraph=True)
        torch.compiler.reset()
        return torch.compile(module, backend="eager", fullgraph=True)

    def warm(self) -> None:
        """Pay what an engine's first use in a process costs (imports, tables), so that it is not counted to a case."""
        module = self.wrap(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
        for _ in range(2):
            module(torch.ones(1, 2))

    def judge(self, case: Case, expected: Observed) -> Verdict:
        """Run a case under the engine and compare it with eager. ``call_seconds``: of the calls, less eager's."""
        kept: list[Any] = []

        def wrap(module: nn.Module) -> Any:
            kept.append(self.wrap(module))
            return kept[0]

        try:
            got = case.observe(wrap)
        except self.breaks as error:
            told = sorted(getattr(error, "findings", ()), key=lambda f: f.severity.rank)  # the causes before the notes
            findings = [{"code": f.code, "message": f.message, "line": f.location.range.start.line + 1} for f in told]
            return {"status": "break", "reason": sentence(error), "findings": findings[:5]}
        except Exception as error:
            lines = traceback.format_exc().strip().splitlines()
            return {"status": "error", "reason": sentence(error), "trace": lines[-12:]}
        changed = difference(expected, got)
        if changed is not None:
            return {"status": "wrong", "reason": changed}
        verdict: Verdict = {"status": "complete"}
        if self.name == "magpy":
            captures = magpy_core.captures(kept[0])
            if not captures or not all(capture.is_complete for capture in captures):
                return {"status": "break", "reason": f"{len(captures)} captures, not all complete", "findings": []}
            verdict |= {"captures": len(captures), "guards": max(len(capture.guards) for capture in captures)}
        added = [g.seconds - e.seconds for g, e in zip(got.calls, expected.calls, strict=True)]
        return verdict | {"call_seconds": [round(s, 5) for s in added]}


def run_case(case: Case, name: str, warm: bool = False) -> Verdict:
    """Eager three times, to know what is deterministic, then the engine once; how they compare."""
    start = time.process_time()
    try:
        first = case.observe(plain)
    except Exception as error:
        return {"status": "eager failed", "reason": sentence(error)}
    eager_seconds = time.process_time() - start
    for _ in range(2):
        try:
            again = case.observe(plain)
            changed = difference(first, again)
        except Exception as error:
            changed = sentence(error)
        if changed is not None:
            return {"status": "not deterministic", "reason": changed}
    engine = Engine(name)
    if warm:
        engine.warm()
    start = time.process_time()
    verdict = engine.judge(case, again)  # the last run: by then what is lazy in the libraries has been done
    verdict["seconds"] = round(time.process_time() - start, 3)
    verdict["eager_seconds"] = round(eager_seconds, 3)
    return verdict
