"""A compiled graph as data. Key type: StoredGraph. Key functions: stored_graph, called."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from magpy_core._compat.torch.direct_calls import GeneratedCall, generated_call
from magpy_core._compat.torch.generated_autograd import Gradients
from magpy_core._compat.torch.generated_modules import GeneratedModule, files_of, kept_of, load
from magpy_core.backends.base import CompiledCode, CompiledGraph
from magpy_core.backends.blocks.joining import Boxed, joined, parts_of
from magpy_core.backends.convention import Convention


@dataclass(frozen=True)
class Unit:
    """A generated module, and the positions of the inputs that it writes, and of results that are inputs or views of them,
    with these; if it is called under autograd, the module of the backward graph."""

    module: GeneratedModule
    written: tuple[int, ...]
    returned: tuple[tuple[int, int], ...] = ()
    views: tuple[tuple[int, int], ...] = ()
    backward: GeneratedModule | None = None
    gradients: Gradients | None = None

    def called(self, folder: Path) -> Boxed:
        run, backward = load(self.module, folder), None
        if self.backward is not None and self.gradients is not None:
            backward = load(self.backward, folder), self.gradients
        return GeneratedCall(run, self.written, backward, self.returned, self.views).called

    @staticmethod
    def from_json(data: dict[str, Any]) -> Unit:
        module, written = GeneratedModule(**data["module"]), tuple(data["written"])
        if data["backward"] is None:
            return Unit(module, written, _tuples(data["returned"]), _tuples(data["views"]))
        return Unit(module, written, (), (), GeneratedModule(**data["backward"]), Gradients(**_tuples(data["gradients"])))


def _tuples(value: Any) -> Any:
    """JSON's lists as tuples."""
    if isinstance(value, dict):
        return {key: _tuples(item) for key, item in value.items()}
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


@dataclass(frozen=True)
class StoredGraph:
    """``text``: the function that calls the units; empty if there is only one. ``guards`` and ``generated_code`` as in
    `CompiledGraph`."""

    units: tuple[Unit, ...]
    text: str
    convention: Convention
    guards: tuple[str, ...]
    generated_code: str

    @property
    def libraries(self) -> list[str]:
        """The names of its libraries in the folder of compiled code."""
        modules = [module for unit in self.units for module in (unit.module, unit.backward) if module is not None]
        return sorted({name for module in modules for name in files_of(module)})

    def json(self) -> dict[str, Any]:
        convention, numbers = self.convention, self.convention.numbers
        return {
            "units": [asdict(unit) for unit in self.units],
            "text": self.text,
            "arity": convention.arity,
            "freed": convention.freed,
            "numbers": numbers and [[(i, str(dtype or "")) for i, dtype in numbers[0]], numbers[1]],
            "uncounted": convention.uncounted,
            "guards": self.guards,
            "generated_code": self.generated_code,
        }

    @staticmethod
    def from_json(data: dict[str, Any]) -> StoredGraph:
        units = [Unit.from_json(unit) for unit in data["units"]]
        freed, numbers = data["freed"], data["numbers"]
        convention = Convention(
            data["arity"],
            None if freed is None else tuple(freed),
            numbers and ([(i, _dtype(name)) for i, name in numbers[0]], [(kind, what) for kind, what in numbers[1]]),
            tuple(data["uncounted"]),
        )
        return StoredGraph(tuple(units), data["text"], convention, tuple(data["guards"]), data["generated_code"])


def _dtype(name: str) -> torch.dtype | None:
    return getattr(torch, name.removeprefix("torch.")) if name else None


def stored_graph(compiled: CompiledGraph, folder: Path) -> StoredGraph | None:
    """What is to be stored of a graph whose libraries are in ``folder``; None if that is not all that it consists of."""
    code = compiled.code
    if code is None or compiled.replayed is not None or not _is_json(code.convention):
        return None
    text, functions = parts_of(code.call) or ("", (code.call,))
    calls = [generated_call(function) for function in functions]
    units = [unit for call in calls if call is not None and (unit := _unit(call, folder)) is not None]
    if len(units) < len(functions):
        return None
    return StoredGraph(tuple(units), text, code.convention, tuple(compiled.guards), compiled.generated_code or "")


def _unit(call: GeneratedCall, folder: Path) -> Unit | None:
    module = kept_of(call.run, folder)
    if module is None or call.backward is None:
        return None if module is None else Unit(module, call.written, call.returned, call.views)
    run, gradients = call.backward
    backward = kept_of(run, folder)
    return None if backward is None else Unit(module, call.written, (), (), backward, gradients)


def _is_json(convention: Convention) -> bool:
    constants = [what for kind, what in (convention.numbers or ((), ()))[1] if kind == "constant"]
    return all(
        type(value) in (int, bool, str, type(None)) or (type(value) is float and math.isfinite(value)) for value in constants
    )


def called(stored: StoredGraph, folder: Path) -> CompiledGraph:
    """The compiled graph. Raises OSError if a library is gone, or is another one, ImportError if it can't be loaded."""
    calls = [unit.called(folder) for unit in stored.units]
    call = joined(stored.text, calls) if stored.text else calls[0]
    fn, boxed = stored.convention.applied(lambda *inputs: call([*inputs]), call)
    return CompiledGraph(
        fn, boxed, [*stored.guards], stored.generated_code or None, code=CompiledCode(call, stored.convention)
    )
