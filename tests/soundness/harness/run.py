"""Law: never wrong, as a test. The same calls on two copies of a world, eager and compiled, must be indistinguishable.

``run(program, schedule)`` executes a schedule of calls with changes to the world between them on both copies, and after
every call compares results, gradients, exceptions, everything printed, logged or warned, the random streams, and both worlds
(identity included). Key types: Step, Outcome, Report; key functions: run, standard_schedules.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import io
import logging
import random
import re
import sys
import types
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

import magpy_core
from magpy_core.regions.api import region_of
from tests.soundness.harness.compare import differences, instance_dict
from tests.soundness.harness.cuts import cut_at_random
from tests.soundness.harness.module_changes import surroundings
from tests.soundness.harness.world import Arguments, Change, Program, World, named_change, world_module


@dataclass(frozen=True)
class Step:
    """One call, after ``change`` (None: the world stays as it is)."""

    change: Change | None = None


@dataclass
class Outcome:
    """Everything a call shows: its value or exception, its output, and the random streams after it."""

    result: Any = None
    error: BaseException | None = None
    text: str = ""
    logs: list[Any] = field(default_factory=list)
    warned: list[Any] = field(default_factory=list)
    grad_error: str = ""
    rng: torch.Tensor | None = None
    python_rng: Any = None
    numpy_rng: Any = None


@dataclass
class Report:
    """What one schedule showed. ``differences`` is empty when the two worlds were indistinguishable."""

    program: Program
    differences: list[str] = field(default_factory=list)
    calls: int = 0
    changed: int = 0
    hits: int = 0
    recordings: int = 0
    captures: int = 0
    complete: bool = False
    disabled: str = ""
    findings: list[Any] = field(default_factory=list)
    hits_by_call: list[bool] = field(default_factory=list)
    held: int = 0  # changed calls that a capture took although the world had changed
    failed: int = 0  # changed calls that no capture took, though there were some
    kinds: Counter[str] = field(default_factory=Counter)
    trail: list[str] = field(default_factory=list)

    @property
    def captured(self) -> bool:
        return self.hits > 0

    def __str__(self) -> str:
        state = f"{self.calls} calls, {self.changed} changed, {self.recordings} recorded, {self.hits} hits"
        return f"{self.program.name}: {state}{' DIFFERENT' if self.differences else ''}"


class _Logs(logging.Handler):
    def __init__(self, into: list[Any]) -> None:
        super().__init__(logging.DEBUG)
        self.into = into

    def emit(self, record: logging.LogRecord) -> None:
        trouble = record.exc_info[1] if record.exc_info else None
        self.into.append(
            (
                record.name,
                record.levelno,
                record.getMessage(),
                record.funcName,
                record.lineno,
                record.pathname,
                repr(trouble),
            )
        )


def call(world: World, fn: Callable[..., Any], i: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Outcome:
    """One observed call of ``fn`` in ``world``."""
    out = Outcome()
    seed_streams(100 + i)
    text = io.StringIO()
    handler = _Logs(out.logs)
    handling = "handling" in world.program.options
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        with (
            contextlib.redirect_stdout(text), contextlib.redirect_stderr(text),
            warnings.catch_warnings(record=True) as warned,
        ):  # fmt: skip
            warnings.simplefilter("always")
            with surroundings(world):
                try:
                    out.result = fn(*args, **kwargs) if not handling else _while_handling(fn, args, kwargs)
                except Exception as error:
                    out.error = error
    finally:
        root.removeHandler(handler)
        _log_everything()  # the program may have set another level
    out.rng, out.python_rng, out.numpy_rng = torch.get_rng_state(), random.getstate(), _numpy_stream()
    out.text = _ONCE.sub("", text.getvalue())
    out.warned = [(w.category.__name__, str(w.message), *_place(w)) for w in warned]
    if "nograd" not in world.program.options and out.error is None:
        world.results.append(out.result)
        if len(world.results) >= (together := world.program.option("together", 1)):
            out.grad_error = _backward(world.results if together > 1 else out.result)
            world.results.clear()
    return out


def _log_everything() -> None:
    """Set only where it changes something: setting a level empties the caches of all loggers, which are many."""
    root = logging.getLogger()
    if root.level != logging.DEBUG:
        root.setLevel(logging.DEBUG)


def seed_streams(seed: int) -> None:
    """Seed torch's, Python's and NumPy's streams. ``torch.manual_seed`` would write down a traceback for every device
    that is not there, which took a sixth of the whole run."""
    torch.default_generator.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)


def _numpy_stream() -> Any:
    name, keys, *rest = np.random.get_state()
    return name, keys.tobytes(), rest  # type: ignore[union-attr]


_NATIVE = ("", 0)
_ONCE = re.compile(r"^UserWarning: .*\(Triggered internally at .*\)\n", re.M)
"""What torch's native code warns of once in the life of a process, as it prints it where warnings are errors."""


_OF_NUMPY = re.compile(
    "(invalid value|divide by zero|overflow|underflow) encountered in |Mean of empty slice|__array_wrap__ must accept"
)


def _place(warning: warnings.WarningMessage) -> tuple[str, int]:
    """Where a warning is given. What torch's native code and NumPy's arithmetic warn of has the line of whoever called it,
    and is given once more where a graph ran in vain: known limit."""
    text = str(warning.message)
    native = "(Triggered internally at" in text or (
        warning.category in (RuntimeWarning, DeprecationWarning) and _OF_NUMPY.match(text)
    )
    return _NATIVE if native else (warning.filename, warning.lineno)


def _while_handling(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The call is made by code that handles an exception: it becomes the context of what is raised."""
    try:
        raise LookupError("being handled")
    except LookupError:
        return fn(*args, **kwargs)


def _backward(result: Any) -> str:
    """Differentiate everything differentiable in a result; the type and text of what that raises."""
    try:
        tensors = [t for t in _tensors(result) if t.requires_grad and t.grad_fn is not None and t.is_floating_point()]
    except RuntimeError as error:  # a view that may not be looked at any more
        return f"{type(error).__name__}: {error}"
    if not tensors:
        return ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            total = sum((t.double().pow(2).sum() for t in tensors[1:]), tensors[0].double().pow(2).sum())
            total.backward()
    except Exception as error:
        return type(error).__name__
    return ""


def _tensors(value: Any, depth: int = 0) -> list[torch.Tensor]:
    if issubclass(type(value), torch.Tensor):
        return [value]
    if depth > 4:
        return []
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in _tensors(v, depth + 1)]
    if not issubclass(type(value), (type, types.FunctionType, types.ModuleType, torch.nn.Module)):
        return _tensors(list((instance_dict(value) or {}).values()), depth + 1)
    return []


def _compared(world: World) -> dict[str, Any]:
    visible = world.program.visible(world)
    visible["__ambient_after__"] = world.ambient_after
    return visible


def run(
    program: Program,
    schedule: Sequence[Step],
    *,
    backend: str = "eager",
    compiler: Callable[..., Any] | None = None,
    whole: bool = False,
    cuts: random.Random | None = None,
) -> Report:
    """Run ``schedule`` on two worlds. ``compiler(target)`` replaces ``magpy_core.compile`` (to test the harness).

    ``cuts``: the program's functions are cut into stretches, at random places. ``whole``: decisions on data cut no graph, as
    under ``fullgraph=True``, but what can't be captured still runs plainly.
    """
    level = logging.getLogger().level
    functions = dict(vars(random))
    _log_everything()
    gc.freeze()  # only what this run makes is looked through below
    try:
        return _run(program, schedule, backend, compiler, whole, cuts)
    finally:
        # what the finalizers of one program print must not appear in the output of the next
        sys.modules.pop(world_module(program), None)
        vars(random).update(functions)  # programs replace some
        logging.getLogger().setLevel(level)
        gc.collect()
        gc.unfreeze()


def _run(
    program: Program,
    schedule: Sequence[Step],
    backend: str,
    compiler: Callable[..., Any] | None,
    whole: bool,
    cuts: random.Random | None,
) -> Report:
    report = Report(program)
    eager, compiled = World(program, "eager"), World(program, "compiled")
    reference: Callable[..., Any] = eager.namespace["region"]
    make = compiler or (lambda target: magpy_core.compile(target, backend=backend, same_random=True))
    subject: Callable[..., Any] = make(compiled.namespace["region"])
    region = None if compiler else region_of(subject)
    if whole and region is not None:
        region.options = replace(region.options, fullgraph=True)
    stretches = cut_at_random(region, compiled, cuts) if region is not None and cuts is not None else []
    history: tuple[list[Any], list[Any]] = ([], [])
    for i, step in enumerate(schedule):
        hits = region.hits if region is not None else 0
        live = region is not None and bool(region.captures) and not region.disabled
        outcomes: list[Outcome] = []
        did: list[bool | str] = []
        for world, fn, kept in ((eager, reference, history[0]), (compiled, subject, history[1])):
            world.enter()
            if step.change is not None:
                seed_streams(50 + i)
                did.append(_apply(step.change, world))
            seed_streams(10 + i)
            args, kwargs = _arguments(world, i)
            outcome = call(world, fn, i, args, kwargs)
            world.leave()
            kept.append((args, kwargs, outcome.result, outcome.error))
            outcomes.append(outcome)
        if backend != "eager":
            compiled.next_hook = eager.next_hook  # what compiles registers hooks of its own, which take numbers
        report.calls += 1
        if step.change is not None and did[0] is True:
            report.changed += 1
            report.kinds[step.change.kind] += 1
            hit = region is not None and region.hits > hits
            report.held += live and hit
            report.failed += live and not hit
        report.trail.append(f"call {i}" + (f" after {step.change}" if step.change else ""))
        report.hits_by_call.append(region is not None and region.hits > hits)
        if did and did[0] != did[1]:
            report.differences.append(f"{report.trail[-1]}: the change itself went another way: {did}")
        found = _compare(eager, compiled, outcomes[0], outcomes[1], history, close=backend != "eager")
        if found:
            report.differences += [f"{report.trail[-1]}: {d}" for d in found]
            break
    if region is not None:
        for one in (region, *stretches):
            report.hits, report.recordings = report.hits + one.hits, report.recordings + one.recordings
            report.captures += len(one.captures)
        report.complete = bool(region.captures) and all(c.is_complete for c in region.captures)
        report.disabled, report.findings = region.disabled, list(region.findings.values())
    return report


def _apply(change: Change, world: World) -> bool | str:
    """Whether there was anything to change, or what the program raised about it."""
    try:
        return change.apply(world)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _arguments(world: World, i: int) -> Arguments:
    """The call's arguments; as the program makes them where a change does not fit, none where it cannot make any."""
    for _ in range(2):
        try:
            return world.arguments(i)
        except Exception:
            world.rewrite.clear()
    return (), {}


def _compare(eager: World, compiled: World, a: Outcome, b: Outcome, history: Any, *, close: bool) -> list[str]:
    out = []
    # torch's native code gives some warnings once in a process, so to the first of the two worlds only
    a.warned = [w for w in a.warned if w in b.warned or w[2:] != _NATIVE]
    if close:  # what was compiled is other operations, with other warnings
        a.warned, b.warned = ([w for w in side if w[2:] != _NATIVE] for side in (a.warned, b.warned))
    if any(w[2:] == _NATIVE for w in b.warned):
        a.warned, b.warned = _once(a.warned), _once(b.warned)
    eager.half_differentiated = eager.half_differentiated or bool(close and a.grad_error)
    if eager.half_differentiated:  # compiled, a pass in another order; a checkpoint that eager finds changed is none there
        b.grad_error = a.grad_error
    for name in ("text", "logs", "warned", "grad_error"):
        x, y = getattr(a, name), getattr(b, name)
        if x != y:
            out.append(f"{name}: {x!r} != {y!r}")
    if a.rng is not None and b.rng is not None and not torch.equal(a.rng, b.rng):
        out.append("torch's random stream differs")
    if a.python_rng != b.python_rng:
        out.append("Python's random stream differs")
    if a.numpy_rng != b.numpy_rng:
        out.append("NumPy's random stream differs")
    roots = ({"world": _compared(eager), "calls": history[0]}, {"world": _compared(compiled), "calls": history[1]})
    out += differences(*roots, (eager.module, compiled.module), close=close, gradients=not eager.half_differentiated)
    if a.error is not None and b.error is None:
        out.append(f"eager raised {a.error!r}")
    if b.error is not None and a.error is None:
        out.append(f"compiled raised {b.error!r}")
    return out


def _once(warned: list[Any]) -> list[Any]:
    """The warnings of native code are there once, before all others."""
    native = sorted({w for w in warned if w[2:] == _NATIVE})
    return [*native, *(w for w in warned if w[2:] != _NATIVE)]


@functools.cache
def _changes(program: Program) -> tuple[str, ...]:
    """The names of the program's own changes."""
    return tuple(World(program, "eager").changes)


def standard_schedules(program: Program) -> list[tuple[str, list[Step]]]:
    """Steady calls; then for each of the program's own changes: steady, change, steady, changed once more."""
    n = program.option("calls", 6)
    out = [("steady", [Step()] * n)]
    for name in _changes(program):
        change = named_change(name)
        out.append((name, [Step(), Step(), Step(change), Step(), Step(change), Step()]))
    return out
