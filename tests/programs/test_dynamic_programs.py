"""Programs whose control flow depends on data: compiled and plain, they agree exactly at every call, whatever path it takes.

Key types: Paths (which lines of a program each call runs), Pair (a program twice, plain and compiled).
"""

from __future__ import annotations

import inspect
import random
import sys
import types
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import magpy_core
from tests.programs import dynamic
from tests.programs.dynamic import PROGRAMS, build, seed
from tests.soundness.harness.compare import differences
from tests.soundness.harness.cuts import without_trials

_QUICK, _MANY = 12, 100
_SMALL = ("early_exit_resnet", "moe_top1", "skipnet_feedforward", "tree_lstm")


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
    return torch.get_rng_state(), random.getstate(), np.random.get_state()


def _restore(streams: tuple[Any, ...]) -> None:
    torch.set_rng_state(streams[0])
    random.setstate(streams[1])
    np.random.set_state(streams[2])


def _same_streams(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    return torch.equal(a[0], b[0]) and a[1] == b[1] and all(np.array_equal(x, y) for x, y in zip(a[2], b[2], strict=True))


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
    """A program built twice alike. The second is compiled; ``check(i)`` makes the i-th call of both and compares them."""

    def __init__(self, name: str, backend: str) -> None:
        self.paths = Paths(str(Path(dynamic.__file__).with_name(f"{name}.py")))
        with self.paths:
            self.plain = build(name)
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

    def check(self, i: int) -> None:
        with self.paths:
            mine = self.plain.input(i)
        other = self.ours.input(i)
        before = _streams()
        with self.paths:
            expected = self.plain.call(mine)
        self.taken.append(tuple(self.paths.path))
        after = _streams()
        _restore(before)
        found = self.call(other)
        assert _same_streams(_streams(), after), f"call {i}: the random streams differ"
        assert not (wrong := differences((expected, mine), (found, other))), f"call {i}: {wrong}"
        assert not (wrong := differences(_state(self.plain.model), _state(self.ours.model))), f"after call {i}: {wrong}"

    def uncompile(self) -> None:
        for compiled in self.compiled:
            magpy_core.uncompile(compiled)


def _check(name: str, calls: int, backend: str = "eager") -> Pair:
    pair = Pair(name, backend)
    try:
        for i in range(calls):
            pair.check(i)
    finally:
        pair.uncompile()
    assert len(set(pair.taken)) >= 2, f"{name} took one path only"
    return pair


def test_there_are_many() -> None:
    assert len(PROGRAMS) >= 24


@pytest.mark.parametrize("name", _SMALL)
def test_some_calls(name: str) -> None:
    _check(name, _QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_many_calls_on_every_path(name: str) -> None:
    """All lines of the program run in these calls, so that no branch is there in vain."""
    with without_trials():
        assert not _check(name, _MANY).paths.never_ran()
