"""A program whose control flow depends on data, twice: in eager mode and compiled.

Key types: Pair, Paths (which lines of a program each call runs). Key function: call_plainly.
"""

from __future__ import annotations

import inspect
import random
import sys
import types
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

import magpy_core
from tests.programs import dynamic
from tests.programs.dynamic import build, seed
from tests.soundness.harness.compare import differences


class Paths:
    """The lines of ``file`` that run while it is active, call by call."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.path: list[int] = []
        self.lines: set[int] = set()

    def __enter__(self) -> None:
        self.path = []
        self._before = sys.gettrace()
        sys.settrace(self._called)

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)
        self.lines |= set(self.path)

    def _called(self, frame: types.FrameType, event: str, arg: Any) -> Any:
        return self._line if frame.f_code.co_filename == self.file else None

    def _line(self, frame: types.FrameType, event: str, arg: Any) -> Any:
        if event == "line":
            self.path.append(frame.f_lineno)
        return self._line

    def never_ran(self) -> list[int]:
        """The lines of its functions that have not run."""
        with open(self.file, encoding="utf-8") as source:
            module = compile(source.read(), self.file, "exec")
        found = set()
        for code in _codes(module):
            if code.co_flags & inspect.CO_OPTIMIZED:
                found |= {line for *_, line in code.co_lines() if line not in (None, code.co_firstlineno)}
        return sorted(found - self.lines)


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from _codes(constant)


def _streams() -> tuple[Any, ...]:
    devices = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    return [torch.get_rng_state(), *devices], random.getstate(), np.random.get_state()


def _restore(streams: tuple[Any, ...]) -> None:
    host, *devices = streams[0]
    torch.set_rng_state(host)
    if devices:
        torch.cuda.set_rng_state_all(devices)
    random.setstate(streams[1])
    np.random.set_state(streams[2])


def _same_streams(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    of_torch = all(torch.equal(x, y) for x, y in zip(a[0], b[0], strict=True))
    return of_torch and a[1] == b[1] and all(np.array_equal(x, y) for x, y in zip(a[2], b[2], strict=True))


def _state(model: nn.Module) -> dict[str, Any]:
    """Parameters, buffers, gradients, and what its modules keep as ordinary Python data."""
    state: dict[str, Any] = dict(model.state_dict())
    state |= {f"{name}.grad": parameter.grad for name, parameter in model.named_parameters()}
    for path, module in model.named_modules():
        for name, value in vars(module).items():
            if not name.startswith("_"):
                state[f"{path}:{name}"] = _compared(value)
    return state


def _compared(value: Any) -> Any:
    """``value``, but without the fields that its class leaves out of comparisons (the time of an entry of a log)."""
    if isinstance(value, list):
        return [_compared(item) for item in value]
    if is_dataclass(value):
        return [getattr(value, field.name) for field in fields(value) if field.compare]
    return value


CPU = torch.device("cpu")


def call_plainly(name: str, device: torch.device) -> Any:
    """The first call of a program on ``device`` in eager mode alone: whether it can run there at all."""
    with _on(device):
        program = build(name)
        return program.call(program.input(0))


def _on(device: torch.device) -> AbstractContextManager[Any]:
    """A context in which programs, their inputs and all that they make are on ``device``."""
    return nullcontext() if device.type == "cpu" else device


class Pair:
    """A program built twice alike. The second is compiled; ``check(i)`` makes the i-th call of both and compares them.

    ``device``: where the programs and their inputs are; on another one than the CPU, sums need not be the same to the last
    bit."""

    def __init__(self, name: str, backend: str, device: torch.device = CPU) -> None:
        self.device = device
        self.paths = Paths(str(Path(dynamic.__file__).with_name(f"{name}.py")))
        with _on(device), self.paths:
            self.plain = build(name)
        with _on(device):
            self.ours = build(name)
        self.compiled: list[Any] = []
        self.call = self.ours.call
        for region in self.ours.regions:
            compiled = magpy_core.compile(region, backend=backend, wait=True, same_random=True)
            self.compiled.append(compiled)
            if region is self.ours.call:
                self.call = compiled
        self.taken: list[tuple[int, ...]] = []
        seed(1)

    def check(self, i: int) -> None:
        with _on(self.device):
            with self.paths:
                mine = self.plain.input(i)
            other = self.ours.input(i)
        before = _streams()
        with _on(self.device), self.paths:
            expected = self.plain.call(mine)
        self.taken.append(tuple(self.paths.path))
        after = _streams()
        _restore(before)
        with _on(self.device):
            found = self.call(other)
        assert _same_streams(_streams(), after), f"call {i}: the random streams differ"
        close = self.device.type != "cpu"
        assert not (wrong := differences((expected, mine), (found, other), close=close)), f"call {i}: {wrong}"
        states = _state(self.plain.model), _state(self.ours.model)
        assert not (wrong := differences(*states, close=close)), f"after call {i}: {wrong}"

    def uncompile(self) -> None:
        for compiled in self.compiled:
            magpy_core.uncompile(compiled)
