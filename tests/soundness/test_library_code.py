"""Python of libraries whose frames are left alone (NumPy, torch's own, typing): what it reads and writes counts too."""

from __future__ import annotations

import importlib
import io
import logging
import reprlib
import sys
import types
import typing
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import magpy_core

pytestmark = pytest.mark.filterwarnings("ignore")


class Scaled(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.k = 2.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.k


def rescaled(graph_module: torch.fx.GraphModule, number: int) -> None:
    for node in graph_module.graph.nodes:
        if node.op == "call_function":
            node.args = (node.args[0], float(number))
    graph_module.recompile()


def setting_in_a_library() -> Any:
    """An object whose ``__setattr__`` is Python in a file that is left alone."""
    text = "class Setting:\n    def __setattr__(self, name, value):\n        self.__dict__[name] = value\n"
    space: dict[str, Any] = {}
    exec(compile(text, reprlib.__file__, "exec"), space)
    return space["Setting"]()


def loggers() -> Any:
    text = io.StringIO()
    parent = logging.Logger("app", logging.WARNING)
    parent.addHandler(logging.StreamHandler(text))
    child = logging.Logger("app.child")
    child.parent = parent
    return types.SimpleNamespace(text=text, parent=parent, child=child, spare=logging.StreamHandler(text))


def records() -> Any:
    return np.rec.array([(1.0, 2.0)], dtype=[("a", "f8"), ("b", "f8")])


# What there is, what a region does with it and a number, and how it changes between calls.
Case = tuple[Callable[[], Any], Callable[[Any, torch.Tensor, int], Any], Callable[[Any, int], Any]]
CASES: dict[str, Case] = {
    "polynomial": (
        lambda: np.poly1d([1.0, 2.0]),
        lambda o, x, n: (len(o), o.order, x * n),
        lambda o, i: o.__setitem__(i, float(i)),
    ),
    "mask": (
        lambda: np.ma.array([1.0, 2.0], mask=[0, 1]),
        lambda o, x, n: (setattr(o, "mask", [n % 2, 0]), x),
        lambda o, i: o.__setitem__(i % 2, np.ma.masked),
    ),
    "record field": (records, lambda o, x, n: x * float(o.a[0]) * n, lambda o, i: setattr(o, "a", i)),
    "record written": (records, lambda o, x, n: (setattr(o, "a", n), x), lambda o, i: setattr(o, "b", i)),
    "code of a graph": (lambda: torch.fx.symbolic_trace(Scaled()), lambda o, x, n: (o.code, o(x) * n), rescaled),
    "type hints": (
        lambda: types.FunctionType((lambda a: a).__code__, {}),
        lambda o, x, n: (typing.get_type_hints(o), x * n),
        lambda o, i: o.__annotations__.__setitem__("a", (int, str, float)[i % 3]),
    ),
    "gain": (
        Scaled,
        lambda o, x, n: x * torch.nn.init.calculate_gain("leaky_relu", o.k * n),
        lambda o, i: setattr(o, "k", i),
    ),
    "attribute set": (setting_in_a_library, lambda o, x, n: (setattr(o, "v", n), x), lambda o, i: setattr(o, "w", i)),
    "level asked": (
        loggers,
        lambda o, x, n: (o.child.isEnabledFor(10 * n), o.child.getEffectiveLevel(), x),
        lambda o, i: o.parent.setLevel(10 * (i % 5)),
    ),
    "level set": (
        loggers,
        lambda o, x, n: (o.parent.setLevel(10 * n), o.child.info("%d", n), x),
        lambda o, i: setattr(o.parent, "disabled", bool(i % 2)),
    ),
    "level written": (
        loggers,
        lambda o, x, n: (setattr(o.parent, "level", 10 * n), o.child.isEnabledFor(20), x),
        lambda o, i: setattr(o.child, "level", 10 * (i % 2)),
    ),
    "handler added later": (
        loggers,
        lambda o, x, n: (o.child.error("%d", n), o.parent.handlers.append(o.spare), x),
        lambda o, i: o.parent.handlers.clear(),
    ),
    "adapter": (
        lambda: logging.LoggerAdapter(logging.Logger("app"), {"k": 1}),
        lambda o, x, n: (o.process("m", {}), x * n),
        lambda o, i: o.extra.__setitem__("k", i),
    ),
}


def shown(thing: Any) -> Any:
    if isinstance(thing, types.SimpleNamespace):
        return thing.text.getvalue(), thing.parent.level, len(thing.parent.handlers)
    if isinstance(thing, (torch.nn.Module, types.FunctionType, logging.LoggerAdapter)):
        return None
    return ("" if type(thing).__repr__ is object.__repr__ else repr(thing)) + repr(vars(thing))


@pytest.mark.parametrize("numbers", [(1, 1, 1, 1, 1, 1, 1), (1, 2, 3, 2, 4, 2, 3)], ids=["same", "varied"])
@pytest.mark.parametrize("change", [False, True], ids=["still", "changed"])
@pytest.mark.parametrize("case", CASES)
def test_same_as_plain_python(case: str, change: bool, numbers: tuple[int, ...]) -> None:
    make, region, changes = CASES[case]
    outcomes = []
    for function in (region, magpy_core.compile(region, backend="eager")):
        thing, seen = make(), []
        for call, number in enumerate(numbers):
            if change and call >= 3:
                changes(thing, call)
            result = repr(function(thing, torch.ones(2), number))
            seen.append((result, shown(thing)))
        outcomes.append(seen)
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("way", [importlib.import_module, __import__])
def test_a_module_imported_by_name_is_replaced(way: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def give(value: float) -> None:
        made = types.ModuleType("replaced_module")
        made.factor = value  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, made.__name__, made)

    def region(x: torch.Tensor) -> torch.Tensor:
        return x * way("replaced_module").factor

    compiled = magpy_core.compile(region, backend="eager")
    seen = []
    for value in (2.0, 2.0, 5.0):
        give(value)
        seen += [compiled(torch.ones(1)).item() for _ in range(2)]
    monkeypatch.delitem(sys.modules, "replaced_module")
    with pytest.raises(ModuleNotFoundError):
        compiled(torch.ones(1))
    assert seen == [2.0, 2.0, 2.0, 2.0, 5.0, 5.0]
