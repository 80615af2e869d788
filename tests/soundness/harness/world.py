"""Programs and worlds of the soundness tests.

A *program* is a section of a corpus file (``# === name: options``): the source of a small module with a ``region``
(function, bound method or nn.Module), ``args(i)`` making the i-th call's arguments, and functions ``change_*`` that
change the world between calls. A *world* is that source executed in a fresh module, so two worlds share nothing.
What can be changed in any world is in ``changes``. Key types: Program, World, Change; key functions: programs, reachable.
"""

from __future__ import annotations

import collections
import collections.abc
import functools
import random
import re
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

Arguments = tuple[tuple[Any, ...], dict[str, Any]]
CORPUS = Path(__file__).parents[1] / "corpus"
_HEADER = re.compile(r"^# === (\w+)(?:: *(.*))?$")
_PRELUDE_END = "# === "


@dataclass(frozen=True)
class Program:
    """One section. Options: ``refused`` (must not be captured: sound, but no capture is possible), ``nograd`` (results
    are not differentiated), ``plain`` (not captured today, and no loss), ``calls=N``, ``together=N`` (N calls before
    each backward pass, through all their results), ``quick`` (run with the compiled backends too), ``since=14`` (needs
    Python 3.14), ``refused_before=14`` (refused in earlier ones)."""

    name: str
    source: str
    file: str
    line: int
    options: frozenset[str]
    prelude: str

    @property
    def refused(self) -> bool:
        return "refused" in self.options or sys.version_info.minor < self.option("refused_before", 0)

    def execute(self, world: World) -> None:
        """Make the program's names in a new world."""
        for code in _compiled(self, world.side):
            exec(code, world.namespace)

    def roots(self, world: World) -> dict[str, Any]:
        """What changes are looked for in."""
        return {k: v for k, v in world.namespace.items() if not k.startswith(("__", "change_", "args"))}

    def visible(self, world: World) -> dict[str, Any]:
        """What is compared after each call."""
        return {k: v for k, v in world.namespace.items() if not k.startswith(("__", "change_", "args"))}

    def option(self, name: str, default: int) -> int:
        for o in self.options:
            if o.startswith(name + "="):
                return int(o.split("=")[1])
        return default

    def __str__(self) -> str:
        return self.name


@functools.cache
def _compiled(program: Program, side: str) -> tuple[types.CodeType, types.CodeType]:
    """The code of a program's worlds of one side. The other side has code objects of its own: nothing that is kept with a
    code object, as instrumented clones are, reaches the world that is compared with."""
    source = "\n" * program.line + program.source
    return tuple(compile(text, program.file, "exec", dont_inherit=True) for text in (program.prelude, source))  # type: ignore[return-value]


def programs() -> list[Program]:
    """Every program of the corpus that this Python can run, in file order."""
    everything = [p for path in sorted(CORPUS.glob("*.py")) for p in sections(path)]
    return [p for p in everything if p.option("since", 0) <= sys.version_info.minor]


def sections(path: Path) -> Iterator[Program]:
    lines = path.read_text().splitlines()
    starts = [i for i, line in enumerate(lines) if _HEADER.match(line)]
    prelude = "\n".join(lines[: starts[0]]) if starts else ""
    for n, start in enumerate(starts):
        end = starts[n + 1] if n + 1 < len(starts) else len(lines)
        match = _HEADER.match(lines[start])
        assert match is not None
        options = frozenset((match[2] or "").replace(",", " ").split())
        yield Program(match[1], "\n".join(lines[start:end]), str(path), start, options, prelude)


class World:
    """A program executed in a module of its own. ``ambient`` holds the interpreter's own state the changes may set."""

    def __init__(self, program: Program, side: str) -> None:
        self.program = program
        self.module = types.ModuleType(world_module(program))
        self.side = side
        self.ambient: dict[str, Any] = {}
        self.ambient_after: tuple[Any, ...] | None = None  # not among the program's names, which stay as they are
        self.rewrite: dict[str, Callable[[Arguments], Arguments]] = {}  # changes of the arguments in force, by name
        self.handles: list[Any] = []  # of hooks that changes added
        self.namespace = self.module.__dict__
        self.namespace["__file__"] = program.file
        self.half_differentiated = False  # a backward pass has raised: which gradients it had added by then is its order's
        self.next_hook = 0
        self.results: list[Any] = []  # of calls whose backward pass is still to come
        torch.default_generator.manual_seed(0)  # the others are of devices that are not there
        random.seed(0)
        self.enter()
        program.execute(self)
        self.leave()

    def enter(self) -> None:
        """Make this world's module the one that imports and pickling find, and its hook numbers the ones torch gives."""
        sys.modules[self.module.__name__] = self.module
        RemovableHandle.next_id = self.next_hook

    def leave(self) -> None:
        self.next_hook = RemovableHandle.next_id

    @property
    def changes(self) -> list[str]:
        return [n for n, v in self.namespace.items() if n.startswith("change_") and callable(v)]

    def arguments(self, i: int) -> Arguments:
        made = self.namespace["args"](i)
        if not (isinstance(made, tuple) and len(made) == 2 and isinstance(made[0], tuple) and isinstance(made[1], dict)):
            made = made if isinstance(made, tuple) else (made,), {}
        for rewrite in self.rewrite.values():
            made = rewrite(made)
        return made


def world_module(program: Program) -> str:
    """The name under which a program's worlds are imported."""
    return f"world_{program.name}"


@dataclass(frozen=True)
class Change:
    """A change by name, applicable to any world of one program (it finds its place by a deterministic walk).

    ``apply`` gives whether there was anything to change."""

    name: str
    apply: Callable[[World], bool] = field(compare=False)
    kind: str = ""

    def __str__(self) -> str:
        return self.name


def named_change(name: str) -> Change:
    """One of the program's own."""

    def apply(world: World) -> bool:
        world.namespace[name]()
        return True

    return Change(name, apply, "the program's own")


def reachable(world: World) -> list[tuple[str, Any]]:
    """Mutable user objects of a world with their paths, in a deterministic order (same in every world of a program)."""
    walk = _Walk(world.module.__name__)
    for name, value in world.program.roots(world).items():
        walk.visit(name, value, 0)
    return walk.out


class _Walk:
    def __init__(self, own: str) -> None:
        self.own = own
        self.out: list[tuple[str, Any]] = []
        self.seen: set[int] = set()

    def visit(self, path: str, v: Any, depth: int) -> None:
        # ``type(v)``, never ``isinstance``: that would run a program's own ``__getattribute__``
        tp = type(v)
        if depth > 6 or id(v) in self.seen or issubclass(tp, (int, float, str, bytes, types.ModuleType, type(None))):
            return
        self.seen.add(id(v))
        if issubclass(tp, torch.Tensor):
            self.out.append((path, v))
        elif issubclass(tp, dict):
            self.out.append((path, v))
            self._all(path, [(f"[{_key(i, k)}]", x) for i, (k, x) in enumerate(dict.items(v))], depth)
        elif issubclass(tp, (list, tuple, collections.deque)):
            if not issubclass(tp, tuple):
                self.out.append((path, v))
            self._all(path, [(f"[{i}]", x) for i, x in enumerate(_items(v))], depth)
        elif issubclass(tp, (set, collections.abc.Iterator)):
            self.out.append((path, v))
        elif issubclass(tp, types.FunctionType):
            self._function(path, v, depth)
        elif issubclass(tp, types.MethodType):
            self.visit(path + ".__self__", v.__self__, depth + 1)
        elif issubclass(tp, functools.partial):
            self._all(path, [(".func", v.func), (".args", v.args), (".keywords", v.keywords)], depth)
        elif issubclass(tp, type):
            if v.__module__ == self.own:
                self.out.append((path, v))
                self._all(path, [(f".{k}", x) for k, x in v.__dict__.items() if not k.startswith("__")], depth)
        elif issubclass(tp, nn.Module) or tp.__module__ == self.own:
            self._object(path, v, depth)
        elif issubclass(tp, types.CellType):
            self._all(path, [(".contents", v.cell_contents)] if cell_is_full(v) else [], depth)

    def _all(self, path: str, items: list[tuple[str, Any]], depth: int) -> None:
        for name, value in items:
            self.visit(path + name, value, depth + 1)

    def _function(self, path: str, f: types.FunctionType, depth: int) -> None:
        if f.__module__ != self.own or f.__name__.startswith(("change_", "args")):
            return
        self.out.append((path, f))
        for name, c in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True):
            self.out.append((f"{path} cell {name}", c))
            self.visit(f"{path} cell {name}", c, depth)
        self._all(path + ".__defaults__", [(f"[{i}]", x) for i, x in enumerate(f.__defaults__ or ())], depth)
        self._all(path + ".__dict__", [(f"[{k!r}]", x) for k, x in f.__dict__.items()], depth)

    def _object(self, path: str, v: Any, depth: int) -> None:
        self.out.append((path, v))
        try:
            d = object.__getattribute__(v, "__dict__")
        except AttributeError:
            d = {}
        for k, x in list(d.items()):
            if k in ("_parameters", "_buffers", "_modules") and isinstance(x, dict):
                self._all(path, [(f".{name}", y) for name, y in x.items()], depth)
            elif not k.startswith("_") or type(v).__module__ == self.own:
                self.visit(f"{path}.{k}", x, depth + 1)
        for name in slots_of(type(v)):
            if (x := slot_value(v, name)) is not _EMPTY:
                self.visit(f"{path}.{name}", x, depth + 1)


def _key(i: int, key: Any) -> str:
    """A dict's key in a path: what a program's object says of itself is the program's own code."""
    return repr(key) if type(key) in (str, int, float, bool, tuple, type(None)) else f"{type(key).__name__} key {i}"


def _items(v: Any) -> list[Any]:
    """The items of a list, tuple or deque, whatever its class says."""
    base = next(k for k in (list, tuple, collections.deque) if issubclass(type(v), k))
    return list(base.__iter__(v))


_EMPTY: Any = object()


def cell_is_full(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def slots_of(cls: type) -> list[str]:
    """Names of the ``__slots__`` of Python classes."""
    return [
        n
        for k in cls.__mro__
        for n, m in k.__dict__.items()
        if isinstance(m, types.MemberDescriptorType) and k.__flags__ & (1 << 9) and n != "__vectorcalloffset__"
    ]


def slot_value(obj: Any, name: str) -> Any:
    try:
        return object.__getattribute__(obj, name)
    except AttributeError:
        return _EMPTY
