"""Saves a program's state after some of its steps and at its end, to be compared with another run's. Key type: Recorder.

What is saved, when, and why: magpy_core/verification/runs/README.md. Nothing runs inside of a region's call.
"""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Iterator
from typing import Any

from magpy_core.limits import LIMITS
from magpy_core.runner.discovery import Discovery
from magpy_core.runner.steps import StepClock

INDEX = "index.json"
END = "end"
_LIBRARIES = ("torch.fx", "torch._", "magpy_core")


class Recorder:
    """One file for each saved state: a dict of tensors by name. The index has their steps, and what could not be saved."""

    def __init__(self, wanted: dict[str, Any]) -> None:
        self._folder, self._steps = str(wanted["folder"]), wanted["steps"]
        self._seed: int | None = wanted["noise"]
        self._noise: Any = None
        self._optimizers: list[Any] = []  # kept alive, as are modules: a function's models die before the program ends
        self._roots: list[Any] = []
        self._pending: int | None = None
        self._before: list[dict[int, Any]] = []  # of each optimizer, its parameters before a step that is saved
        self._gradients: list[dict[int, Any]] = []  # after it
        self._next, self._bytes, self._last = 1, 0, 0
        self._has_ended = False
        self._index: dict[str, Any] = {"states": {}, "left_out": [], "error": "", "itself": False, "steps": 0, "updates": {}}

    def watch(self, clock: StepClock, discovery: Discovery) -> None:
        told = clock.on_step

        def stepped(n: int) -> None:
            told(n)
            self._stepped(n)

        clock.on_step, clock.before_call = stepped, self._before_call
        discovery.on_optimizer = self._optimizers.append

    def torch_was_imported(self) -> None:
        if self._seed is not None:
            from magpy_core.verification.runs.noisy_program import NoisyProgram

            self._noise = NoisyProgram(self._seed, separates=self._seed >= LIMITS.noisy_programs - 1)
            self._noise.begin()

    def _stepped(self, n: int) -> None:
        self._last = n
        if self._is_saved(n):
            self._pending = n
            self._next = 2 * n
            if self._before:  # a program may drop its gradients before its next step
                self._gradients = [_copies(optimizer, gradients=True) for optimizer in self._optimizers]

    def _is_saved(self, n: int) -> bool:
        return n in self._steps if self._steps is not None else n >= self._next

    def _before_call(self) -> None:
        if self._pending is not None:
            step, self._pending = self._pending, None
            self._save(step)
            self._before = []
        if self._seed is None and not self._before and self._is_saved(self._last + 1):
            self._before = [_copies(optimizer) for optimizer in self._optimizers]
        if self._noise is not None:
            self._noise.is_on = True

    def ended(self, *, itself: bool) -> None:
        """The program has ended ``itself``, or is about to be stopped."""
        if self._has_ended:
            return
        self._has_ended = True
        self._index["itself"], self._index["steps"] = itself, self._last
        self._save(END)
        if self._noise is not None:
            self._noise.is_on = False
        self._write_index()

    def _save(self, label: int | str) -> None:
        if self._noise is not None:
            self._noise.is_on = False
        try:
            self._written(label)
        except Exception as exc:  # too little memory, a full disk, a module that computes its parameters
            self._index["error"] = self._index["error"] or f"{type(exc).__name__}: {exc}"
        self._write_index()

    def _written(self, label: int | str) -> None:
        import sys

        if "torch" not in sys.modules:
            return
        import torch

        with torch.no_grad():
            state = {name: value.detach().cpu().clone() for name, value in self._state(final=label == END)}
        size = sum(value.numel() * value.element_size() for value in state.values())
        if label != END and self._bytes + size > LIMITS.kept_states:
            self._index["left_out"].append(label)
            return
        self._bytes += size
        file = f"state-{label}.pt"
        torch.save(state, os.path.join(self._folder, file))
        self._index["states"][str(label)] = file
        if self._before and self._gradients and label != END:
            self._save_updates(label)

    def _save_updates(self, label: int | str) -> None:
        """How far the step has moved the parameters of each optimizer, and by which gradients."""
        import torch

        found, size = [], 0
        for optimizer, before, gradients in zip(self._optimizers, self._before, self._gradients, strict=False):
            now = {id(one): one.detach() for one in _parameters(optimizer)}
            updates = {str(n): now[key] - old for n, (key, old) in enumerate(before.items()) if key in now}
            kept = {str(n): gradients[key] for n, key in enumerate(before) if key in gradients}
            # what storing a parameter rounds away
            sizes = {str(n): float(old.norm()) * torch.finfo(old.dtype).eps for n, old in enumerate(before.values())}
            found.append({"kind": type(optimizer).__name__, "gradients": kept, "updates": updates, "sizes": sizes})
            size += sum(one.numel() * one.element_size() for one in (*updates.values(), *kept.values()))
        self._gradients = []
        if self._bytes + size > LIMITS.kept_states:
            return
        self._bytes += size
        file = f"updates-{label}.pt"
        torch.save(found, os.path.join(self._folder, file))
        self._index["updates"][str(label)] = file

    def _write_index(self) -> None:
        with open(os.path.join(self._folder, INDEX), "w", encoding="ascii") as out:
            json.dump(self._index, out)

    # -- what is saved

    def _state(self, *, final: bool) -> Iterator[tuple[str, Any]]:
        """Names and tensors, each tensor once."""
        import torch

        taken: dict[str, int] = {}

        def unique(name: str) -> str:
            taken[name] = taken.get(name, 0) + 1
            return name if taken[name] == 1 else f"#{taken[name]} {name}"

        self._find_roots()
        roots = [(unique(type(root).__qualname__), root) for root in sorted(self._roots, key=self._order)]
        names: dict[int, str] = {}
        for name, root in roots:
            for inner, tensor in [*root.named_parameters(), *root.named_buffers()]:
                if id(tensor) not in names and _is_plain(tensor):
                    names[id(tensor)] = full = unique(f"{name}.{inner}")
                    yield full, tensor
        for optimizer in self._optimizers:
            yield from self._of_optimizer(optimizer, names, unique)
        if final and self._index["itself"]:
            yield "torch's random state", torch.get_rng_state()

    def _of_optimizer(self, optimizer: Any, names: dict[int, str], unique: Any) -> Iterator[tuple[str, Any]]:
        import torch

        kind, number = type(optimizer).__name__, 0
        for group in getattr(optimizer, "param_groups", ()):
            lr = group.get("lr")
            if isinstance(lr, int | float):
                yield unique(f"{kind} (learning rate)"), torch.tensor(float(lr), dtype=torch.float64)
            for parameter in group["params"]:
                number += 1
                if id(parameter) not in names and _is_plain(parameter):
                    names[id(parameter)] = full = unique(f"parameter {number} of {kind}")
                    yield full, parameter
                name = names.get(id(parameter), f"parameter {number}")
                for key, value in dict(optimizer.state.get(parameter, {})).items():
                    for inner, tensor in _tensors(str(key), value):
                        yield unique(f"{name} ({inner} of {kind})"), tensor

    def _find_roots(self) -> None:
        """Modules that are no part of another one, in the order in which they are found."""
        import torch

        known = {id(root) for root in self._roots}
        alive = [one for one in gc.get_objects() if issubclass(type(one), torch.nn.Module)]
        inner = {id(child) for one in alive for child in (one.__dict__.get("_modules") or {}).values()}
        new = [one for one in alive if id(one) not in inner and id(one) not in known and "_parameters" in one.__dict__]
        self._roots = [root for root in self._roots if id(root) not in inner]
        self._roots += [one for one in new if not type(one).__module__.startswith(_LIBRARIES) and not _is_graph(one)]

    def _order(self, root: Any) -> tuple[str, int, int, float]:
        """Of modules of one class: by the first optimizer that trains them, then by what they hold, as they may be found in
        another order in another run."""
        tensors = [one for one in [*root.parameters(), *root.buffers()] if _is_plain(one)]
        held = {id(one) for one in tensors}
        trained = (n for n, one in enumerate(self._optimizers) if any(id(p) in held for p in _parameters(one)))
        total = sum(float(one.detach().double().sum()) for one in tensors if not one.is_complex())
        first = next(trained, len(self._optimizers))
        return type(root).__qualname__, first, len(tensors), total if total == total else 0.0


def _parameters(optimizer: Any) -> Iterator[Any]:
    for group in getattr(optimizer, "param_groups", ()):
        yield from group["params"]


def _copies(optimizer: Any, *, gradients: bool = False) -> dict[int, Any]:
    """Of an optimizer's parameters, or of their gradients, by the parameter."""
    import torch

    found = {}
    for parameter in _parameters(optimizer):
        value = parameter.grad if gradients else parameter
        if _is_plain(value) and value.layout is torch.strided and value.is_floating_point():
            found[id(parameter)] = value.detach().clone()
    return found


def _is_graph(module: Any) -> bool:
    import torch.fx

    return isinstance(module, torch.fx.GraphModule)


def _is_plain(tensor: Any) -> bool:
    """Whether it has elements that can be saved."""
    import torch

    return isinstance(tensor, torch.Tensor) and type(tensor) in (torch.Tensor, torch.nn.Parameter) and not tensor.is_meta


def _tensors(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    import torch

    if _is_plain(value):
        yield name, value
    elif type(value) in (int, float):
        yield name, torch.tensor(float(value), dtype=torch.float64)
    elif isinstance(value, list | tuple):
        for number, one in enumerate(value):
            yield from _tensors(f"{name}[{number}]", one)
