"""The public API: compile, uncompile, disabled, monitor, captures, reset. Key types: Capture, Monitored, GraphBreak."""

from __future__ import annotations

import functools
import inspect
import types
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, overload

import torch
from torch import nn

from magpy_core._compat.cpython.live_objects import LiveObjects
from magpy_core._compat.cpython.own_caches import clear_at_exit
from magpy_core._compat.torch.eval_frame import hide
from magpy_core._compat.torch.module_calls import CALL
from magpy_core._compat.torch.tensor_guards import no_torch_function
from magpy_core._compat.versions import UnsupportedVersion, check_versions
from magpy_core.backends import UnknownBackend, get_backend
from magpy_core.backends.background import waits_by_default
from magpy_core.backends.tuning import tuned
from magpy_core.capture.build import Capture
from magpy_core.findings import Finding, Location, Position, Range
from magpy_core.recording import marks
from magpy_core.refgraph.stand_in import StandIn, call_of, observed, stand_in, target_of
from magpy_core.regions import module_call, provider
from magpy_core.regions.disable import disable_module, plain_function
from magpy_core.regions.fragments.fragments import cut
from magpy_core.regions.lines import line_location
from magpy_core.regions.options import Options
from magpy_core.regions.region import Region
from magpy_core.regions.threads import disabled
from magpy_core.verification import Plan

__all__ = [
    "Capture",
    "GraphBreak",
    "Monitored",
    "UnknownBackend",
    "UnsupportedVersion",
    "captures",
    "compile",
    "disable",
    "disabled",
    "mark_dynamic",
    "monitor",
    "reset",
    "uncompile",
]

F = TypeVar("F")
_regions: LiveObjects[Region] = LiveObjects()


class GraphBreak(RuntimeError):
    """Raised under ``fullgraph=True`` when a region is not one complete graph. ``findings`` say where and why."""

    def __init__(self, name: str, findings: list[Finding]) -> None:
        lines = [f"{name} is not one complete operator graph:"]
        lines += [f"  {f.location.file}:{f.location.range.start.line + 1}: {f.code} {f.message}" for f in findings]
        super().__init__("\n".join(lines))
        self.findings = findings


@dataclass
class Monitored:
    """One monitored run: the target's own result, what was captured (empty when it can't be), and why not."""

    result: Any
    captures: list[Capture]
    findings: list[Finding]


class _FullGraphRegion(Region):
    """A region that raises instead of falling back. The monitored run has taken place: its effects stay."""

    def build_capture(
        self, recorded: Any, args: tuple[Any, ...], kwargs: dict[str, Any], held: Capture | None = None
    ) -> Capture | None:
        assumed = bool(self.learned.assumed)
        capture = super().build_capture(recorded, args, kwargs, held)
        if capture is None and assumed and not self.learned.assumed:
            return None  # the next call is captured without
        if capture is None and recorded.skip_reason and not recorded.refused:
            return None  # only this call can't be captured (it filled a cache, say); the next one may be
        if capture is None or not capture.is_complete:
            reasons = [f for f in recorded.findings if f.code.startswith(("MP1", "MP9"))]
            self.policy.failure = GraphBreak(self.name, reasons)
        return capture

    def dispatch(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self.policy.failure is not None and self.options.fullgraph:
            raise self.policy.failure
        result = super().dispatch(args, kwargs)
        if not self.options.fullgraph:
            return result
        if self.policy.failure is not None:
            raise self.policy.failure
        if self.disabled:
            raise GraphBreak(self.name, list(self.findings.values()))
        return result


def location_of(target: Any) -> Location:
    """Where a function, method or module's forward is defined."""
    fn = target.forward if isinstance(target, nn.Module) else target
    while isinstance(fn, functools.partial):
        fn = fn.func
    fn = inspect.unwrap(fn.__func__ if isinstance(fn, types.MethodType) else fn)
    code = getattr(fn, "__code__", None) or getattr(type(fn).__dict__.get("__call__"), "__code__", None)
    if code is None:
        return Location("<unknown>", Range(Position(0, 0), Position(0, 1)))
    return line_location(code.co_filename, code.co_firstlineno, code.co_qualname)


def _name_of(target: Any) -> str:
    if isinstance(target, nn.Module):
        return type(target).__name__
    return getattr(target, "__qualname__", None) or type(target).__name__


def _region(target: Callable[..., Any], options: Options, name: str | None, function: Callable[..., Any]) -> Region:
    """The region of ``target``, a function or a module, that calls ``function``."""
    check_versions()
    get_backend(options.backend)
    clear_at_exit()
    cls = _FullGraphRegion if options.fullgraph else Region
    label = name or _name_of(target)
    kind = "module" if isinstance(target, nn.Module) else "function"
    region = cls(label, kind, label, location_of(target), function, options)
    _regions.add(region)
    session = provider.session()
    if session is not None:
        session.attach(region)
    return region


@overload
def compile(
    target: F,
    *,
    backend: str = ...,
    mode: str = ...,
    dynamic: bool | None = ...,
    fullgraph: bool = ...,
    options: Mapping[str, Any] | None = ...,
    name: str | None = ...,
    same_random: bool = ...,
    wait: bool | None = ...,
    cuda_graphs: bool | None = ...,
    verify: bool | None = ...,
) -> F: ...
@overload
def compile(
    target: None = ...,
    *,
    backend: str = ...,
    mode: str = ...,
    dynamic: bool | None = ...,
    fullgraph: bool = ...,
    options: Mapping[str, Any] | None = ...,
    name: str | None = ...,
    same_random: bool = ...,
    wait: bool | None = ...,
    cuda_graphs: bool | None = ...,
    verify: bool | None = ...,
) -> Callable[[F], F]: ...
def compile(
    target: Any = None,
    *,
    backend: str = "inductor",
    mode: str = "default",
    dynamic: bool | None = None,
    fullgraph: bool = False,
    options: Mapping[str, Any] | None = None,
    name: str | None = None,
    same_random: bool = False,
    wait: bool | None = None,
    cuda_graphs: bool | None = None,
    verify: bool | None = None,
) -> Any:
    """Returns a compiled function, or compiles an nn.Module in place and returns it. For any other callable (a bound
    method, a partial, an object with ``__call__``), returns an object with the same attributes, state and comparisons;
    its copies and pickles are not compiled.

    The first call runs under the monitor; later calls whose guards hold run the compiled graph and replay the side
    effects. Without a target, returns a decorator. Compiling again replaces the options:

    ``backend``: ``eager``, ``aot_eager`` or ``inductor``.
    ``mode``: ``default``; ``max``, which makes Inductor try several kernels; ``quick``, which compiles nothing: the graph
    runs operator by operator.
    ``dynamic``: None: a dimension or number that has changed between calls varies in the next capture. True: the dimensions
    of the tensors among the arguments and the integers there vary from the first capture on, where the engine can. False:
    dimensions never vary, and each shape is another capture. ``mark_dynamic`` names single dimensions.
    ``fullgraph``: raise GraphBreak instead of falling back to eager mode; branches on tensor data are checked after the
    graph has run, which is undone if the program goes the other way.
    ``options``: names and values of ``torch._inductor.config`` to compile with.
    ``same_random``: draw random numbers from the same stream as eager.
    ``wait``: whether a call that needs a graph compiled by Inductor waits for it. If not, the program continues in
    eager mode while the graph is compiled in the background: the default, unless MAGPY_COMPILE is ``foreground`` in the
    environment, for tests. Without that, and without ``fullgraph``, compiled and eager calls then alternate and are timed,
    at most 200 of each, and a graph that is slower is no longer used (MP401).
    ``cuda_graphs``: on CUDA, compiled code without autograd (a whole training step, a call without gradients) is replayed as
    a CUDA graph where that is possible and measured to be faster (MP411). None: unless MAGPY_CUDA_GRAPHS is 0 in the
    environment.
    ``verify``: on the CPU, what Inductor compiled is compared with eager mode in the first call that it would serve, and not
    used if they differ by more than rounding explains (MP914). None: unless MAGPY_VERIFY is 0 in the environment.

    Raises UnknownBackend, UnsupportedVersion, TypeError; ValueError for an unknown mode or option.
    """
    if target is None:
        return functools.partial(
            compile, backend=backend, mode=mode, dynamic=dynamic, fullgraph=fullgraph, options=options, name=name,
            same_random=same_random, wait=wait, cuda_graphs=cuda_graphs, verify=verify,
        )  # fmt: skip
    if not callable(target) and not isinstance(target, classmethod):
        raise TypeError(f"magpy_core.compile takes a function, a method or an nn.Module, not a {type(target).__name__}")
    if isinstance(target, type):
        raise TypeError("magpy_core.compile takes an instance of a module, not its class")
    beside = not waits_by_default() if wait is None else not wait
    if dynamic not in (None, True, False):
        raise TypeError(f"dynamic is None, True or False, not {dynamic!r}")
    backend, tuning = tuned(backend, mode, options, cuda_graphs=cuda_graphs)
    how = Options(
        "compiled", backend, fullgraph=fullgraph, same_random=same_random, background=beside, tuning=tuning, dynamic=dynamic,
        on_trial=(beside or not waits_by_default()) and not fullgraph and backend == "inductor",
        cut=lambda region: cut(region, _regions.add),
        verify=Plan.parse("first") if verify is None else Plan(first=verify),
    )  # fmt: skip
    if isinstance(target, nn.Module):
        module = module_call.inner(target)
        if module_call.is_bypassed(module):
            name = type(module).__name__
            text = (
                f"compile has no effect on a {name}: its class defines `__call__` itself, and calls don't reach `forward`."
            )
            warnings.warn(f"{text} Compile the method: `call = magpy_core.compile(module.__call__)`.", stacklevel=2)
        module_call.install(module, _region(module, how, name, CALL))
        return target
    if isinstance(target, (staticmethod, classmethod)):
        return type(target)(_compile_callable(target.__func__, how, name))
    return _compile_callable(target, how, name)


def _compile_callable(target: Any, how: Options, name: str | None) -> Any:
    target = uncompile(target)
    if type(target) is not types.FunctionType:
        return stand_in(target, _region(target, how, name, observed(target)))
    region = _region(target, how, name, target)

    @functools.wraps(target)
    def compiled(*args: Any, **kwargs: Any) -> Any:
        return region(*args, **kwargs)

    compiled.__magpy_region__ = region  # type: ignore[attr-defined]
    return hide(compiled)


def mark_dynamic(tensor: torch.Tensor, dim: int | Sequence[int]) -> None:
    """Say that dimensions of a tensor vary: the first capture that uses the tensor leaves them free, as ``torch.compile``
    does after ``torch._dynamo.mark_dynamic``. Negative ones count from the end.

    The mark is a hint. It is not an attribute of the tensor, and copies don't have it. A dimension of size 0 or 1 stays as
    it is, for operations treat those sizes in their own way. Where a graph can't be captured or compiled for every size, it
    is for the sizes at hand. Raises TypeError for anything but a tensor and ints, IndexError for a dimension that it doesn't
    have.
    """
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"mark_dynamic takes a tensor, not a {type(tensor).__name__}")
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    if not all(type(d) is int for d in dims):
        raise TypeError(f"mark_dynamic takes the numbers of dimensions, not {dim!r}")
    with no_torch_function():
        most = tensor.dim()
    for d in dims:
        if not -most <= d < most:
            raise IndexError(f"dimension {d} of a tensor that has {most}")
    marks.mark(tensor, [d % most for d in dims])


def disable(target: F) -> F:
    """Keep the calls of a function or an nn.Module out of every capture: a function gives another one (also a decorator), a
    module is changed in place and is plain again after ``compile``.

    A region that comes to such a call is not captured, and MP120 says where; what it does otherwise is captured as before.
    What is compiled and called inside is a region of its own there. Raises TypeError for a class and for what gives a
    generator or a coroutine, whose body runs after the call.
    """
    if isinstance(target, (staticmethod, classmethod)):
        return type(target)(disable(target.__func__))
    if isinstance(target, nn.Module):
        disable_module(target)
        return target
    if not callable(target) or isinstance(target, type):
        raise TypeError(f"magpy_core.disable takes a function or an nn.Module, not {target!r}")
    if inspect.isgeneratorfunction(target) or inspect.iscoroutinefunction(target) or inspect.isasyncgenfunction(target):
        raise TypeError("magpy_core.disable takes no function that gives a generator or a coroutine: its body runs later")
    return plain_function(target)  # type: ignore[return-value]


def uncompile(target: F) -> F:
    """Undo ``compile``: the module, plain again, or the function that was compiled; anything else is returned as it is."""
    if isinstance(target, nn.Module):
        module_call.uninstall(module_call.inner(target))
        return target
    region = _region_behind(target)
    if issubclass(type(target), StandIn):
        return target if region is None else target_of(target)
    # a wrapper of the program's around what was compiled has its attributes, too
    return region.target if region is not None and getattr(target, "__wrapped__", None) is region.target else target


def monitor(target: Callable[..., Any]) -> Callable[..., Monitored]:
    """``monitor(f)(*args, **kwargs)`` runs ``f`` once under the monitor, with no backend. Exceptions of ``f`` are raised."""

    @functools.wraps(target if not isinstance(target, nn.Module) else type(target).forward)
    def run(*args: Any, **kwargs: Any) -> Monitored:
        options = Options("observe", "eager")
        if isinstance(target, nn.Module) and type(target).__call__ is nn.Module.__call__:
            region = _region(target, options, None, CALL)
            result = region(target, *args, **kwargs)
        else:
            region = _region(target, options, None, target)
            result = region(*args, **kwargs)
        return Monitored(result, list(region.captures), list(region.findings.values()))

    return run


def captures(target: Any) -> list[Capture]:
    """The captures of something ``compile`` returned, newest first; raises TypeError for anything else."""
    region = region_of(target)
    spent = region.policy.spent
    return list(region.captures) or ([spent] if spent is not None else [])


def region_of(target: Any) -> Region:
    """The region behind something ``compile`` returned; raises TypeError for anything else."""
    region = _region_behind(target)
    if region is None:
        raise TypeError("captures() takes what magpy_core.compile returned")
    return region


def _region_behind(target: Any) -> Region | None:
    if isinstance(target, nn.Module):
        return module_call.installed(module_call.inner(target))
    for found in (target, getattr(target, "__wrapped__", None)):  # a wrapper of the program's has no attributes of ours
        if issubclass(type(found), StandIn):
            call = call_of(found)
            return call if isinstance(call, Region) else None
    return getattr(target, "__magpy_region__", None)


def reset() -> None:
    """Forget every capture, finding and learned fact of every compiled function and module."""
    for region in _regions:
        region.forget()
