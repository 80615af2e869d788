"""A program whose control flow depends on data, twice: in plain Python and compiled.

Key types: Pair, Paths (which lines of a program each call runs).
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
from torch.utils._pytree import tree_map

import magpy_core
from tests.programs import dynamic
from tests.programs.dynamic import build, seed
from tests.programs.dynamic.program import Program
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
    """Parameters, buffers, gradients, and what its modules keep as plain Python data."""
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


class Pair:
    """A program built twice alike. The second is compiled; ``check(i)`` makes the i-th call of both and compares them.

    ``device``: where the programs and their inputs are; on another one than the CPU, sums need not be the same to the last
    bit."""

    def __init__(self, name: str, backend: str, device: torch.device | None = None) -> None:
        self.device = device or torch.device("cpu")
        self.paths = Paths(str(Path(dynamic.__file__).with_name(f"{name}.py")))
        with self._on_device(), self.paths:
            self.plain = build(name)
        with self._on_device():
            self.ours = build(name)
        self.compiled: list[Any] = []
        self.call = self.ours.call
        for region in self.ours.regions:
            compiled = magpy_core.compile(region, backend=backend, wait=True)
            self.compiled.append(compiled)
            if region is self.ours.call:
                self.call = compiled
        self.taken: list[tuple[int, ...]] = []
        seed(1)

    def _on_device(self) -> AbstractContextManager[Any]:
        """A context in which tensors are made there."""
        return nullcontext() if self.device.type == "cpu" else self.device

    def _input(self, program: Program, i: int) -> Any:
        made = program.input(i)
        if self.device.type == "cpu":
            return made
        return tree_map(lambda value: value.to(self.device) if isinstance(value, torch.Tensor) else value, made)

    def call_plainly(self, i: int) -> Any:
        """The i-th call of a program in plain Python alone: whether it can run on the device at all."""
        with self._on_device():
            return self.plain.call(self._input(self.plain, i))

    def check(self, i: int) -> None:
        with self.paths:
            mine = self._input(self.plain, i)
        other = self._input(self.ours, i)
        before = _streams()
        with self._on_device(), self.paths:
            expected = self.plain.call(mine)
        self.taken.append(tuple(self.paths.path))
        after = _streams()
        _restore(before)
        with self._on_device():
            found = self.call(other)
        assert _same_streams(_streams(), after), f"call {i}: the random streams differ"
        close = self.device.type != "cpu"
        assert not (wrong := differences((expected, mine), (found, other), close=close)), f"call {i}: {wrong}"
        states = _state(self.plain.model), _state(self.ours.model)
        assert not (wrong := differences(*states, close=close)), f"after call {i}: {wrong}"

    def uncompile(self) -> None:
        for compiled in self.compiled:
            magpy_core.uncompile(compiled)
