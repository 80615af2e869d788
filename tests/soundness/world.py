"""Programs and worlds of the soundness tests.

A *program* is a section of a corpus file (``# === name: options``): the source of a small module with a ``region``
(function, bound method or nn.Module), ``args(i)`` making the i-th call's arguments, and functions ``change_*`` that
change the world between calls. A *world* is that source executed in a fresh module, so two worlds share nothing.
Key types: Program, World; key functions: programs, generic_changes.
"""

from __future__ import annotations

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

CORPUS = Path(__file__).parent / "corpus"
_HEADER = re.compile(r"^# === (\w+)(?:: *(.*))?$")
_PRELUDE_END = "# === "


@dataclass(frozen=True)
class Program:
    """One section. Options: ``refused`` (must not be captured: sound, but no capture is possible), ``nograd`` (results
    are not differentiated), ``calls=N``, ``quick`` (run with the compiled backends too)."""

    name: str
    source: str
    file: str
    line: int
    options: frozenset[str]
    prelude: str

    @property
    def refused(self) -> bool:
        return "refused" in self.options

    def option(self, name: str, default: int) -> int:
        for o in self.options:
            if o.startswith(name + "="):
                return int(o.split("=")[1])
        return default

    def __str__(self) -> str:
        return self.name


def programs() -> list[Program]:
    """Every program of the corpus, in file order."""
    return [p for path in sorted(CORPUS.glob("*.py")) for p in sections(path)]


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
        self.module = types.ModuleType(f"world_{program.name}")
        self.side = side
        self.ambient: dict[str, Any] = {}
        self.namespace = self.module.__dict__
        self.namespace["__file__"] = program.file
        self.next_hook = 0
        torch.manual_seed(0)
        random.seed(0)
        self.enter()
        exec(compile(program.prelude, program.file, "exec"), self.namespace)
        source = "\n" * program.line + program.source
        exec(compile(source, program.file, "exec"), self.namespace)
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

    def arguments(self, i: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
        made = self.namespace["args"](i)
        if isinstance(made, tuple) and len(made) == 2 and isinstance(made[0], tuple) and isinstance(made[1], dict):
            return made
        return made if isinstance(made, tuple) else (made,), {}


# -- changes that fit any program ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Change:
    """A change by name, applicable to any world of one program (it finds its place by a deterministic walk)."""

    name: str
    apply: Callable[[World], None] = field(compare=False)

    def __str__(self) -> str:
        return self.name


def named_change(name: str) -> Change:
    def apply(world: World) -> None:
        world.namespace[name]()

    return Change(name, apply)


def ambient_change(key: str, value: Any) -> Change:
    def apply(world: World) -> None:
        world.ambient[key] = value

    return Change(f"ambient {key}={value}", apply)


AMBIENT = [
    ambient_change("grad", False),
    ambient_change("grad", True),
    ambient_change("inference", True),
    ambient_change("autocast", True),
    ambient_change("dtype", torch.float64),
    ambient_change("dtype", torch.float32),
    ambient_change("deterministic", True),
]


def reachable(world: World) -> list[tuple[str, Any]]:
    """Mutable user objects of a world with their paths, in a deterministic order (same in every world of a program)."""
    out: list[tuple[str, Any]] = []
    seen: set[int] = set()
    own = world.module.__name__

    def visit(path: str, v: Any, depth: int) -> None:
        if depth > 5 or id(v) in seen or isinstance(v, (int, float, str, bytes, types.ModuleType, type(None))):
            return
        seen.add(id(v))
        if isinstance(v, torch.Tensor):
            out.append((path, v))
        elif isinstance(v, dict):
            out.append((path, v))
            for k, x in list(v.items()):
                visit(f"{path}[{k!r}]", x, depth + 1)
        elif isinstance(v, (list, tuple)):
            if isinstance(v, list):
                out.append((path, v))
            for i, x in enumerate(list(v)):
                visit(f"{path}[{i}]", x, depth + 1)
        elif isinstance(v, types.FunctionType):
            if v.__module__ == own and not v.__name__.startswith(("change_", "args")):
                out.append((path, v))
                for name, c in zip(v.__code__.co_freevars, v.__closure__ or (), strict=True):
                    out.append((f"{path} cell {name}", c))
        elif isinstance(v, types.MethodType):
            visit(path + ".__self__", v.__self__, depth + 1)
        elif isinstance(v, type):
            if v.__module__ == own:
                out.append((path, v))
        elif isinstance(v, nn.Module) or type(v).__module__ == own:
            out.append((path, v))
            d = getattr(v, "__dict__", None) or {}
            for k, x in list(d.items()):
                if k in ("_parameters", "_buffers", "_modules") and isinstance(x, dict):
                    for name, y in list(x.items()):
                        visit(f"{path}.{name}", y, depth + 1)
                elif not k.startswith("_"):
                    visit(f"{path}.{k}", x, depth + 1)

    for name, value in list(world.namespace.items()):
        if not name.startswith(("__", "change_", "args")):
            visit(name, value, 0)
    return out


def _bump(value: Any) -> Any:
    """Another value of the same type."""
    if type(value) is bool:
        return not value
    if type(value) is int:
        return value + 1
    if type(value) is float:
        return value * 1.5 + 0.25
    if type(value) is str:
        return value + "_"
    return None


def generic_changes(world: World) -> list[Change]:
    """Every generic change that fits some object of the world."""
    out: list[Change] = []

    def add(name: str, find: str, act: Callable[[Any], None]) -> None:
        def apply(w: World) -> None:
            for path, v in reachable(w):
                if path == find:
                    act(v)
                    return

        out.append(Change(name, apply))

    for path, v in reachable(world):
        for name, act in _changes_of(v):
            add(f"{name} at {path}", path, act)
    own = {k: v for k, v in world.namespace.items() if not k.startswith("__") and _bump(v) is not None}
    for key in own:

        def bump_global(w: World, key: str = key) -> None:
            if (new := _bump(w.namespace.get(key))) is not None:
                w.namespace[key] = new

        out.append(Change(f"bump global {key}", bump_global))
    return out


def _changes_of(v: Any) -> list[tuple[str, Callable[[Any], None]]]:
    out: list[tuple[str, Callable[[Any], None]]] = []
    if isinstance(v, torch.Tensor):
        out.append(("scale in place", _scale))
        if isinstance(v, nn.Parameter):
            out.append(("toggle requires_grad", _toggle_grad))
        return out
    if isinstance(v, list):
        return [("swap ends", _swap), ("duplicate last", _duplicate), ("bump first", _bump_first)]
    if isinstance(v, dict):
        return [("add key", _add_key), ("reverse order", _reverse_dict), ("bump value", _bump_dict)]
    if isinstance(v, types.CellType):
        return [("bump cell", _bump_cell)]
    if isinstance(v, types.FunctionType):
        return [("bump defaults", _bump_defaults)] if v.__defaults__ else []
    if isinstance(v, type):
        return [("bump class attribute", _bump_class), ("add class attribute", _add_class_attribute)]
    if isinstance(v, nn.Module):
        out += [("toggle training", _toggle_training), ("add forward hook", _add_hook), ("add pre hook", _add_pre_hook)]
        params = [n for n, p in v._parameters.items() if p is not None]
        if params:
            out += [
                ("replace parameter", _replace_parameter),
                ("freeze parameter", _freeze),
                ("strided parameter", _stride_parameter),
            ]
        same: dict[Any, int] = {}
        for p in v.parameters():
            if isinstance(p, nn.parameter.UninitializedParameter):
                continue
            same[tuple(p.shape)] = same.get(tuple(p.shape), 0) + 1
        if any(n > 1 for n in same.values()):
            out.append(("alias parameters", _alias_parameters))
        if len(v._modules) > 1:
            out.append(("alias children", _alias_children))
    out.append(("bump attribute", _bump_attribute))
    out.append(("add attribute", _add_attribute))
    return out


def _scale(t: torch.Tensor) -> None:
    with torch.no_grad():
        if t.is_floating_point() and not t.is_inference():
            t.mul_(1.25)


def _toggle_grad(t: torch.Tensor) -> None:
    if t.is_leaf and t.is_floating_point():
        t.requires_grad_(not t.requires_grad)


def _swap(v: list[Any]) -> None:
    if len(v) > 1:
        v[0], v[-1] = v[-1], v[0]


def _duplicate(v: list[Any]) -> None:
    if v:
        v.append(v[-1])


def _bump_first(v: list[Any]) -> None:
    if v and _bump(v[0]) is not None:
        v[0] = _bump(v[0])


def _add_key(v: dict[Any, Any]) -> None:
    v["added"] = 1


def _reverse_dict(v: dict[Any, Any]) -> None:
    items = list(v.items())[::-1]
    v.clear()
    v.update(items)


def _bump_dict(v: dict[Any, Any]) -> None:
    for k, x in v.items():
        if _bump(x) is not None:
            v[k] = _bump(x)
            return


def _bump_cell(c: Any) -> None:
    try:
        value = c.cell_contents
    except ValueError:
        return
    if _bump(value) is not None:
        c.cell_contents = _bump(value)


def _bump_defaults(f: Any) -> None:
    if f.__defaults__:
        f.__defaults__ = tuple(x if _bump(x) is None else _bump(x) for x in f.__defaults__)


def _bump_class(cls: Any) -> None:
    for k, x in list(cls.__dict__.items()):
        if not k.startswith("__") and _bump(x) is not None:
            setattr(cls, k, _bump(x))
            return


def _add_class_attribute(cls: Any) -> None:
    cls.added = 1


def _bump_attribute(obj: Any) -> None:
    for k, x in list(getattr(obj, "__dict__", {}).items()):
        if not k.startswith("_") and k != "training" and _bump(x) is not None:
            obj.__dict__[k] = _bump(x)
            return


def _add_attribute(obj: Any) -> None:
    if hasattr(obj, "__dict__"):
        object.__setattr__(obj, "added", 1)


def _toggle_training(m: nn.Module) -> None:
    m.train(not m.training)


def _add_hook(m: nn.Module) -> None:
    m.register_forward_hook(_double_output)


def _double_output(module: Any, args: Any, out: Any) -> Any:
    return out * 2 if isinstance(out, torch.Tensor) else out


def _add_pre_hook(m: nn.Module) -> None:
    m.register_forward_pre_hook(_halve_input)


def _halve_input(module: Any, args: Any) -> Any:
    return tuple(a * 0.5 if isinstance(a, torch.Tensor) and a.is_floating_point() else a for a in args)


def _first_parameter(m: nn.Module) -> str:
    return next(n for n, p in m._parameters.items() if p is not None)


def _replace_parameter(m: nn.Module) -> None:
    name = _first_parameter(m)
    old = m._parameters[name]
    assert old is not None
    m._parameters[name] = nn.Parameter(old.detach().clone() + 0.5, requires_grad=old.requires_grad)


def _stride_parameter(m: nn.Module) -> None:
    name = _first_parameter(m)
    old = m._parameters[name]
    assert old is not None
    if old.dim() > 1:
        m._parameters[name] = nn.Parameter(old.detach().t().contiguous().t(), requires_grad=old.requires_grad)


def _freeze(m: nn.Module) -> None:
    p = m._parameters[_first_parameter(m)]
    assert p is not None
    p.requires_grad_(False)


def _alias_parameters(m: nn.Module) -> None:
    """Make two parameters of one shape a single object."""
    places: dict[Any, tuple[nn.Module, str]] = {}
    for sub in m.modules():
        for name, p in list(sub._parameters.items()):
            if p is None or isinstance(p, nn.parameter.UninitializedParameter):
                continue
            first = places.setdefault(tuple(p.shape), (sub, name))
            if first != (sub, name):
                sub._parameters[name] = first[0]._parameters[first[1]]
                return


def _alias_children(m: nn.Module) -> None:
    names = list(m._modules)
    m._modules[names[-1]] = m._modules[names[0]]
