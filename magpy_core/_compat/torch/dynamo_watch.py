"""TorchDynamo's events: graph breaks, recompiles, compiled frames, frames it gives up on.

Dynamo's logs and counters have no columns, frames or structured reasons. So these functions are wrapped, once per process:
``log_graph_break`` (every handled break), the search for recompile reasons, and ``ConvertFrameAssert`` (every frame that is
compiled or given up). Their arguments and results are unchanged. Key names: :func:`watch`, :class:`Listener`.
"""

from __future__ import annotations

import statistics
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any, Protocol

from magpy_core._compat.torch.dynamo import set_mark

Positions = tuple[int | None, int | None, int | None, int | None]
"""First line, last line, first column, end column, as in ``co_positions``."""

_CHECKS = 7  # timed checks of a new guard: a few microseconds each


@dataclass(frozen=True)
class Spot:
    """One instruction that Dynamo was tracing, in the original code."""

    code: CodeType
    positions: Positions


@dataclass(frozen=True)
class Break:
    """A graph break: its type (the registry's ``Gb_type``), its text, and the traced stack, outermost frame first."""

    kind: str
    text: str
    spots: tuple[Spot, ...]


@dataclass(frozen=True)
class Recompile:
    """A frame without a valid compiled version: the reason for each version (newest first), and the frame's variables."""

    code: CodeType
    reasons: tuple[str, ...]
    variables: Mapping[str, Any]


@dataclass(frozen=True)
class Compiled:
    """A frame that was compiled. ``guard_seconds``: the time of one check of its guards; None if it can't be measured."""

    code: CodeType
    graphs: int
    guards: int
    guard_seconds: float | None
    seconds: float


@dataclass(frozen=True)
class GivenUp:
    """A frame that stays in eager mode. ``kind`` is empty if the cause is an error, not a limit of the compiler."""

    code: CodeType
    kind: str
    text: str
    error: str
    at: tuple[str, int] | None


class Listener(Protocol):
    """Called in the middle of Dynamo's work: must not run tensor operations. ``listener_failed`` gets its exceptions."""

    def broke(self, event: Break) -> None: ...
    def recompiled(self, event: Recompile) -> None: ...
    def compiled(self, event: Compiled) -> None: ...
    def gave_up(self, event: GivenUp) -> None: ...
    def listener_failed(self, exc: Exception) -> None:
        """An event could not be processed: a bug in MagPy, or an unknown version of torch."""


_listener: Listener | None = None
_wrapped = False
_suppressed = False  # the program's own setting


def watch(listener: Listener | None) -> None:
    """Send events to ``listener`` from now on (None: to no one). Compiler errors leave frames plain instead of raising."""
    global _listener, _wrapped, _suppressed
    import torch._dynamo.config as config

    if _listener is None:
        _suppressed = config.suppress_errors
    config.suppress_errors = _suppressed if listener is None else True
    _listener = listener
    if _wrapped or listener is None:
        return
    from torch._dynamo import convert_frame, symbolic_convert

    _wrap(symbolic_convert.InstructionTranslatorBase, "log_graph_break", _around_break)
    _wrap(convert_frame, "get_and_maybe_log_recompilation_reasons", _around_reasons)
    _wrap(convert_frame.ConvertFrameAssert, "__call__", _around_frame)
    _wrapped = True


COMPILER = "torch._dynamo"
"""The module whose import is the first sign that a program uses torch.compile."""


def before_first_frame(then: Callable[[], None]) -> None:
    """Call ``then`` once, before Dynamo compiles its first function. To be called right after Dynamo was imported."""
    frame_converter = sys.modules["torch._dynamo.convert_frame"].ConvertFrameAssert
    original = frame_converter.__call__

    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        if frame_converter.__call__ is not __call__:
            return original(self, *args, **kwargs)  # wrapped again meanwhile: this wrapper is no longer needed
        frame_converter.__call__ = original
        then()
        return frame_converter.__call__(self, *args, **kwargs)

    frame_converter.__call__ = __call__


def keep_out(codes: Iterable[CodeType]) -> None:
    """Keep Dynamo from compiling the frames of ``codes``, and all frames that they call."""
    for code in codes:
        set_mark(code, (1, 1))


def hide(package: str) -> None:
    """Keep Dynamo from compiling the functions of ``package`` (already imported), but not the functions that they call.

    The program's calls go through some of them (the replaced ``nn.Module.__call__``), and Dynamo's events for those would be
    reported as the program's.
    """
    for name, module in list(sys.modules.items()):
        if name == package or name.startswith(f"{package}."):
            for thing in list(vars(module).values()):
                if getattr(thing, "__module__", None) == name:
                    _hide(thing)


def _hide(thing: Any) -> None:
    if isinstance(thing, type):
        for member in list(vars(thing).values()):
            _hide(member.fget if isinstance(member, property) else getattr(member, "__func__", member))
    elif isinstance(thing, FunctionType):
        codes = [thing.__code__]
        while codes:
            code = codes.pop()
            set_mark(code, (1, 0))
            codes += [const for const in code.co_consts if isinstance(const, CodeType)]


def own_code_limit() -> int:
    """The number of versions of one function that torch.compile keeps before it gives up."""
    import torch._dynamo.config as config

    return int(config.recompile_limit)


def graph_break_page(kind: str) -> str:
    """The page of a type of graph break in torch's registry; empty if there is none."""
    from torch._dynamo import exc

    return exc.get_gbid_documentation_link(kind) or ""


def compiled_by_program(target_object: Any) -> bool:
    """Whether the program compiles a module itself: ``torch.compile(module)`` or ``module.compile()``."""
    from torch._dynamo import OptimizedModule

    return isinstance(target_object, OptimizedModule) or getattr(target_object, "_compiled_call_impl", None) is not None


def _wrap(owner: Any, name: str, around: Callable[..., Any]) -> None:
    original = getattr(owner, name)

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        listener = _listener
        if listener is None:
            return original(*args, **kwargs)
        return around(listener, original, args, kwargs)

    wrapper.__name__ = name
    setattr(owner, name, wrapper)


def _notify(listener: Listener, event: Callable[[], None]) -> None:
    """Send an event during Dynamo's work, which no exception of the listener may interrupt."""
    try:
        event()
    except Exception as exc:
        listener.listener_failed(exc)


def _around_break(listener: Listener, original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    exc = kwargs.get("exc", args[3] if len(args) > 3 else None)
    if exc is not None and not getattr(exc, "logged", False):
        # A break in an inlined function is logged first with its own kind; the outer ones describe how it was handled.
        _notify(listener, lambda: listener.broke(Break(_kind(exc), str(exc), _spots(exc, args[0]))))
    return original(*args, **kwargs)


def _kind(exc: BaseException) -> str:
    return getattr(exc, "gb_type", None) or ("" if not type(exc).__name__.startswith("User") else type(exc).__name__)


def _spots(exc: BaseException, tracer: Any) -> tuple[Spot, ...]:
    """The traced stack at the break: the innermost translator in the exception's traceback, and its parents."""
    from torch._dynamo.symbolic_convert import InstructionTranslatorBase

    innermost = tracer
    for frame, _ in traceback.walk_tb(exc.__traceback__):
        if isinstance(one := frame.f_locals.get("self"), InstructionTranslatorBase):
            innermost = one
    found: list[Spot] = []
    while innermost is not None:
        instruction = innermost.current_instruction
        positions = getattr(instruction, "positions", None)
        where: Positions = tuple(positions) if positions else (getattr(innermost, "lineno", None), None, None, None)
        found.append(Spot(innermost.f_code, where))
        innermost = getattr(innermost, "parent", None)
    return tuple(reversed(found))


def _around_reasons(listener: Listener, original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    reasons = original(*args, **kwargs)
    if not kwargs.get("skip_logging", False):
        frame = args[1]
        _notify(listener, lambda: listener.recompiled(Recompile(frame.f_code, tuple(map(str, reasons)), frame.f_locals)))
    return reasons


def _around_frame(listener: Listener, original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    from torch._dynamo.utils import counters

    frame = args[1]
    graphs = counters["stats"]["unique_graphs"]
    start = time.perf_counter()
    try:
        result = original(*args, **kwargs)
    except Exception as exc:
        failure = exc
        _notify(listener, lambda: listener.gave_up(_given_up(frame.f_code, failure)))
        raise
    seconds = time.perf_counter() - start

    def compiled() -> None:
        guarded = getattr(result, "guarded_code", None)
        if guarded is not None:
            made = max(counters["stats"]["unique_graphs"] - graphs, 0)
            manager = guarded.guard_manager
            count = len(getattr(manager, "code_parts", ()))
            listener.compiled(Compiled(frame.f_code, made, count, _check_time(manager, frame.f_locals), seconds))

    _notify(listener, compiled)
    return result


def _given_up(code: CodeType, exc: Exception) -> GivenUp:
    stack = getattr(exc, "real_stack", None)
    at = (stack[-1].filename, stack[-1].lineno or 0) if stack else None
    return GivenUp(code, _kind(exc), str(exc), type(exc).__name__, at)


def _check_time(manager: Any, variables: Any) -> float | None:
    """Median seconds of a check that holds. The frame has not run yet, so its variables are those used for compilation."""
    check = getattr(manager, "check", None)
    if check is None:
        return None
    timings = []
    for _ in range(_CHECKS):
        start = time.perf_counter()
        held = check(variables)
        timings.append(time.perf_counter() - start)
        if not held:
            return None
    return statistics.median(timings)
