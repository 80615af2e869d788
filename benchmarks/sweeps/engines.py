"""The engines under test, and the evaluation of a case under an engine. Key types: Engine, Case."""

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
    """How to build a module, the inputs of a call, and its mode."""

    build: Callable[[], nn.Module]
    inputs: Callable[[], Any]
    train: bool = False

    def observe(self, wrap: Callable[[nn.Module], Any]) -> Observed:
        return observe(self.build, self.inputs, wrap, train=self.train)


def plain(module: nn.Module) -> Any:
    """No engine."""
    return module


class Engine:
    """How an engine wraps a module, and the exceptions with which it refuses a complete graph."""

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
        """Runs the engine once, so that its one-time costs (imports, tables) are not measured in a case."""
        module = self.wrap(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
        for _ in range(2):
            module(torch.ones(1, 2))

    def judge(self, case: Case, expected: Observed) -> Verdict:
        """Runs a case under the engine and compares it with eager. ``call_seconds``: the time of the calls minus eager's."""
        kept: list[Any] = []

        def wrap(module: nn.Module) -> Any:
            kept.append(self.wrap(module))
            return kept[0]

        try:
            got = case.observe(wrap)
        except self.breaks as error:
            ordered = sorted(getattr(error, "findings", ()), key=lambda f: f.severity.rank)  # most severe first
            findings = [{"code": f.code, "message": f.message, "line": f.location.range.start.line + 1} for f in ordered]
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
    """Runs eager three times to detect nondeterminism, then the engine once, and compares the results."""
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
    verdict = engine.judge(case, again)  # the last run, after all lazy initialisation in libraries
    verdict["seconds"] = round(time.process_time() - start, 3)
    verdict["eager_seconds"] = round(eager_seconds, 3)
    return verdict
