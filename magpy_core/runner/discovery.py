"""Discovers the regions of a running program. Key type: Discovery.

There are four kinds: an outermost ``nn.Module.__call__``, an ``Optimizer.step``, functions that run a whole training step,
and functions named by the user. Calls inside a region, in a backward pass, under another tracer or in another process are
not affected.

torch is patched at class level right after the program's own ``import torch``: an earlier import would read environment
variables before the program has set them. ``Optimizer.step`` is replaced on each class that defines one, *inside* the
wrapper that torch adds when the first instance is created, because torch.compile removes that wrapper.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FrameType, FunctionType
from typing import Any

from magpy_core.runner import naming
from magpy_core.runner.closures import closure_of
from magpy_core.runner.import_hook import ImportHook
from magpy_core.runner.instances import Instances
from magpy_core.runner.monitoring import Monitoring
from magpy_core.runner.rest import Rest
from magpy_core.runner.step_functions import StepFunctions
from magpy_core.runner.steps import StepsInside
from magpy_core.runner.tracebacks import is_ours


@dataclass(frozen=True)
class _Step:
    """A step that is running."""

    optimizer: Any
    region: Any


class Discovery:
    """Patches torch and routes outermost calls to the session's regions."""

    def __init__(self, monitoring: Monitoring) -> None:
        self._monitoring = monitoring
        monitoring.on_left = self.left
        self._clock = monitoring.clock
        self._modules = Instances()
        self._optimizers = Instances()
        self._updates = Instances()  # of optimizers whose closure runs before the region
        self._names: dict[str, int] = {}
        self._keys = itertools.count()
        self._steps_inside = StepsInside()
        self._local = threading.local()
        self._wrappers: weakref.WeakSet[Any] = weakref.WeakSet()
        """Regions of optimizers that call the step of another one."""
        self._plain: Callable[[], bool] = lambda: False
        self.on_optimizer: Callable[[Any], None] = lambda optimizer: None
        self._step_functions = StepFunctions(self)
        self.rest = Rest(self._clock, lambda: monitoring.calm_session)
        monitoring.before_report = lambda: self._count(self.rest.end)

    # -- at each call

    def _call(self, region: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls an outermost region."""
        timeline = self._monitoring.timeline
        outer = getattr(self._local, "called", None)  # a region that is cut: what it calls may be regions
        if outer is None:
            self._clock.calls()
        self._step_functions.enters()
        self._local.called = region
        was_nested, self._local.is_nested = getattr(self._local, "is_nested", False), outer is not None
        try:
            return region(*args, **kwargs) if timeline is None else timeline.call(region, args, kwargs)
        finally:
            self._local.called = outer
            self._local.is_nested = was_nested
            self._step_functions.leaves()
            self._clock.announce()  # of a region that raised, or of an engine without `left`

    def left(self, region: Any) -> None:
        """Counts the steps inside a call of ``region`` that has returned."""
        if not getattr(self._local, "is_nested", False):
            self._count(self.rest.looked_at)
        clock = self._clock
        made = clock.announce(region)
        replayed = self._steps_inside.replayed(region, made)
        if replayed and self._monitoring.compiles:
            clock.optimizer_stepped(replayed, of=region)
        if (made or replayed) and getattr(self._local, "called", None) is not region:
            clock.check()  # the program has compiled it: nothing of ours follows

    def _count(self, step: Callable[[], None]) -> bool:
        """Whether it could."""
        try:
            step()
        except Exception as exc:
            self._monitoring.failed("MagPy could not count the program's calls", exc)
            return False
        return True

    def _ends_call(self) -> bool:
        """Whether the call that has returned was not part of another region's, which is cut: only such calls are steps."""
        return getattr(self._local, "called", None) is None

    def call_function(self, region: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls the region of a function; without an optimizer, its calls count as module calls."""
        before = self._clock.optimizer_steps
        out = self._call(region, args, kwargs)
        if self._ends_call():
            if self._clock.optimizer_steps == before:
                self._clock.module_called()
            self._clock.check()
        return out

    @property
    def observes(self) -> bool:
        """Whether calls are only watched, as in a check."""
        return not self._monitoring.compiles

    def call_in_parts(self, call: Callable[[], Any], parts: list[Any]) -> Any:
        """Runs a step's statements, in which modules and optimizers are regions; the new ones are added to ``parts``."""
        return self._step_functions.call_in_parts(call, parts)

    def is_outermost(self) -> bool:
        """Whether what is called now may be a region."""
        return not self.rest.is_on and self._monitoring.active and not self._monitoring.in_region() and not self._plain()

    def _make(self, kind: str, name: str, place: tuple[str, int], target: Callable[..., Any]) -> Any:
        name, key, (file, line) = self._numbered(name), (kind, next(self._keys)), place
        return self._monitoring.region(key, kind=kind, name=name, file=file, line=line, target=target)

    def _numbered(self, name: str) -> str:
        number = self._names[name] = self._names.get(name, 0) + 1
        return f"{name} #{number}" if number > 1 else name

    def find_or_none(self, find: Callable[[], Any]) -> Any:
        """What ``find`` returns; None if it fails: the program must go on."""
        try:
            return find()
        except Exception as exc:
            self._monitoring.failed("MagPy could not identify the region", exc)
            return None

    def release(self) -> None:
        """Forgets the regions. The program has ended: what is called now runs in eager mode."""
        self._modules.clear()
        self._optimizers.clear()
        self._updates.clear()
        self._step_functions.release()
        self._wrappers.clear()
        self._local = threading.local()

    # -- torch

    def install(self) -> None:
        """Patch torch. Never raises: it runs inside the program's ``import torch``."""
        try:
            self._install()
        except Exception as exc:
            self._monitoring.failed("MagPy could not watch torch", exc)

    def _install(self) -> None:
        import torch

        from magpy_core._compat.torch.surroundings import backward_pass, in_tracer

        self._clock.marks.mark("import_torch")
        if self._monitoring.starts_with_compiler:
            from magpy_core._compat.torch.dynamo_watch import COMPILER, before_first_frame

            ImportHook(lambda: before_first_frame(self._monitoring.start), COMPILER).install()
        self._plain = lambda: backward_pass()[0] != -1 or in_tracer()
        self._patch_module(torch.nn.Module, torch.compiler.is_compiling)
        if self._monitoring.finds_step_functions:
            from magpy_core._compat.torch.backward_watch import watch_backward

            self._clock.has_trained = False
            watch_backward(self._passes_back, self._step_functions.leaves)
        if self._monitoring.cuts_step_functions:
            from magpy_core._compat.torch.dynamo_watch import COMPILER, before_first_frame
            from magpy_core.stretches.originals import restore

            ImportHook(lambda: before_first_frame(restore), COMPILER).install()
        self._patch_optimizers(torch.optim.Optimizer, torch.compiler.is_compiling)

    def _passes_back(self) -> bool:
        """A backward pass begins. Returns whether its end is to be told, too."""
        if self.rest.is_on:
            return False
        self._clock.has_trained = True
        return self._count(self._step_functions.passes_back)

    def _patch_module(self, base: Any, is_compiling: Callable[[], bool]) -> None:
        from torch.nn.parallel import DistributedDataParallel

        from magpy_core.regions.disable import is_disabled
        from magpy_core.regions.module_call import installed

        original = base.__call__
        get, clock, outermost, call = self._modules.get, self._clock, self.is_outermost, self._call
        monitoring, rest = self._monitoring, self.rest

        def __call__(module: Any, /, *args: Any, **kwargs: Any) -> Any:
            if is_compiling():  # first: TorchDynamo traces this function
                return original(module, *args, **kwargs)
            if rest.inside:
                return original(module, *args, **kwargs)
            if rest.left > 0:
                return rest.call_module(original, (module, *args), kwargs)
            if monitoring.in_region() and monitoring.active:  # most calls: before anything else
                return original(module, *args, **kwargs)
            if not outermost():
                if monitoring.active or not clock.limit:  # in a backward pass or a tracer
                    return original(module, *args, **kwargs)
                return self._uncaptured(original, module, args, kwargs)
            if is_disabled(module):
                return self._uncaptured(original, module, args, kwargs)
            region = installed(module) or get(module)  # the program's own ``magpy_core.compile`` has precedence
            if region is None:
                if isinstance(module, DistributedDataParallel):
                    return original(module, *args, **kwargs)  # the module inside is the region
                region = self.find_or_none(lambda: self._new_region(self._modules, module, original))
                if region is None:
                    return self._uncaptured(original, module, args, kwargs)
            out = call(region, (module, *args), kwargs)
            if self._ends_call():
                clock.module_called()
                clock.check()
            return out

        __call__.__name__, __call__.__qualname__ = original.__name__, original.__qualname__
        __call__.__annotations__ = dict(original.__annotations__)
        __call__.magpy_original = original  # type: ignore[attr-defined]  # marks our replacement: see _compat/torch/surroundings.py
        base.__call__ = __call__

    def _uncaptured(self, original: Callable[..., Any], module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A plain call, because the engine is not available; the program still ends after its steps."""
        if getattr(self._local, "in_module", False):
            return original(module, *args, **kwargs)
        if self._ends_call():
            self._clock.calls()
        self._local.in_module = True
        try:
            out = original(module, *args, **kwargs)
        finally:
            self._local.in_module = False
        if self._ends_call():
            self._clock.module_called()
            self._clock.check()
        return out

    def _new_region(self, instances: Instances, thing: Any, target: Callable[..., Any]) -> Any:
        """The region of a module or an optimizer that is called for the first time."""
        caller = _caller()
        with instances.lock:
            known = instances.get(thing) or instances.adopt(thing, caller)  # another thread may have been quicker
            region = known or self._made_region(instances, thing, target, caller)
        self._step_functions.made(region)
        return region

    def _made_region(self, instances: Instances, thing: Any, target: Callable[..., Any], caller: FrameType | None) -> Any:
        is_module = instances is self._modules
        name = type(thing).__name__
        name = f"{name} (update)" if instances is self._updates else name
        variable = naming.variable_of(thing, caller, method=not is_module)
        defined = (thing.__dict__.get("forward") or type(thing).forward) if is_module else target
        place = naming.definition_of(defined) or naming.call_site(naming.user_frame(caller))
        region = self._make(
            "module" if is_module else "optimizer", f"{variable}: {name}" if variable else name, place, target
        )
        if region is not None:
            instances.add(thing, caller, region, shared=is_module and naming.created_for_this_call(caller))
        return region

    def _patch_optimizers(self, base: Any, is_compiling: Callable[[], bool]) -> None:
        todo = list(base.__subclasses__())
        while todo:
            cls = todo.pop()
            todo += cls.__subclasses__()
            self._patch_step(cls, is_compiling)

        def __init_subclass__(cls: Any, /, **kwargs: Any) -> None:
            super(base, cls).__init_subclass__(**kwargs)
            self._patch_step(cls, is_compiling)

        base.__init_subclass__ = classmethod(__init_subclass__)
        constructor = base.__init__

        @functools.wraps(constructor)
        def __init__(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            self._clock.has_optimizer = True  # module calls before its first step are not steps
            self.on_optimizer(optimizer)
            constructor(optimizer, *args, **kwargs)

        base.__init__ = __init__

    def _patch_step(self, cls: Any, is_compiling: Callable[[], bool]) -> None:
        func = cls.__dict__.get("step")
        if not inspect.isfunction(func):
            return  # inherited (patched where it is defined), or a user's descriptor that we can't replace
        rest = self.rest

        @functools.wraps(func)
        def step(*args: Any, **kwargs: Any) -> Any:
            if is_compiling():
                return func(*args, **kwargs)
            if rest.is_on:
                return rest.step(func, args, kwargs)
            return self._step(func, args, kwargs)

        step.magpy_original = func  # type: ignore[attr-defined]  # recordings see the call of the wrapper only
        if getattr(func, "hooked", False):  # torch.compile would remove a wrapper of a hooked step
            del step.__wrapped__
            step.__signature__ = inspect.signature(func)  # type: ignore[attr-defined]
        cls.step = step

    def _step(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        outer: _Step | None = getattr(self._local, "step", None)
        if outer is not None or (not self._monitoring.active and not self._clock.limit):
            if outer is None or not args or outer.optimizer is args[0]:
                return func(*args, **kwargs)  # a subclass calling its base
            return self._inner_step(outer, func, args, kwargs)
        region, is_outermost = None, bool(args) and self.is_outermost()
        if is_outermost:
            region = self._optimizers.get(args[0])
            if region is None:
                region = self.find_or_none(lambda: self._new_region(self._optimizers, args[0], func))
            if self._gives_way(region, args, kwargs):
                region.calls += 1
                if (closure := closure_of(func, args, kwargs)) is not None:
                    return self._step_after(closure, func, args[0])
                region = None
        if region is None and self._ends_call() and (is_outermost or not self._monitoring.active):
            self._clock.calls()
        self._local.step = _Step(args[0] if args else None, self._optimizers.get(args[0]) if args else None)
        try:
            out = func(*args, **kwargs) if region is None else self._call(region, args, kwargs)
        finally:
            self._local.step = None
        if region is not None and self._gives_way(region, args, kwargs):
            self._has_given_way(region)
        self._has_stepped(args, is_outermost=is_outermost)
        return out

    def _step_after(self, closure: Callable[[], Any], func: Callable[..., Any], optimizer: Any) -> Any:
        """A step that can't be captured with its closure: the model in there is a region, and so is the rest of the step."""
        import torch

        if self._ends_call():
            self._clock.calls()
        self._local.step = _Step(optimizer, self._optimizers.get(optimizer))
        try:
            with torch.enable_grad():
                loss = closure()
            region = self._updates.get(optimizer)
            if region is None:
                region = self.find_or_none(lambda: self._new_region(self._updates, optimizer, func))
            if region is None:
                func(optimizer)
            else:
                self._call(region, (optimizer,), {})
        finally:
            self._local.step = None
        self._has_stepped((optimizer,), is_outermost=True)
        return loss

    def _has_stepped(self, args: tuple[Any, ...], *, is_outermost: bool) -> None:
        inside = self._monitoring.in_region()
        self._clock.optimizer_stepped(of=args[0] if args else None, inside=inside)
        if not inside:
            if is_outermost:
                self._count(lambda: self._step_functions.stepped(args[0]))
            self._clock.check()

    def _gives_way(self, region: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether what the step of ``region`` calls may be regions in its place: the optimizer that it wraps, the model in
        its closure."""
        refused = bool(getattr(region, "disabled", ""))
        return refused and (region in self._wrappers or len(args) > 1 or bool(kwargs))

    def _has_given_way(self, region: Any) -> None:
        """``region`` has just been refused: findings that no one need act on any more become facts."""
        region.times.tally.given_up = "inside"
        if region in self._wrappers:
            region.log.make_facts("the optimizer inside is a region in its place")
        else:
            region.log.make_facts("the model inside is a separate region", of_libraries=True)

    def _inner_step(self, outer: _Step, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The step of an optimizer that another one wraps: part of that one's, or a region if that one can't be."""
        if outer.region is None or not self.is_outermost():
            if outer.region is not None:
                self._wrappers.add(outer.region)
            return func(*args, **kwargs)
        region = self._optimizers.get(args[0])
        if region is None:
            region = self.find_or_none(lambda: self._new_region(self._optimizers, args[0], func))
        return func(*args, **kwargs) if region is None else self._call(region, args, kwargs)

    # -- named functions

    def wrap(self, function: Any, dotted: str) -> Any:
        """``function`` as a region, or unchanged if it can't be one."""
        if (
            not inspect.isfunction(function)
            or inspect.isgeneratorfunction(function)
            or inspect.iscoroutinefunction(function)
        ):
            return function
        code = function.__code__
        place = naming.definition_of(function) or (code.co_filename, code.co_firstlineno)
        region = functools.cache(lambda: self._make("function", dotted.removeprefix("__main__."), place, function))

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            found = self.find_or_none(region) if self.is_outermost() else None
            if found is None:
                return function(*args, **kwargs)
            return self.call_function(found, args, kwargs)

        return call

    # -- step functions

    def step_function(self, function: FunctionType, parts: Sequence[Any]) -> Any:
        """The region, on trial, of a step function with these ``parts``; None: not possible."""
        code = function.__code__
        place = naming.definition_of(function) or (code.co_filename, code.co_firstlineno)
        name = self._numbered(function.__qualname__.rpartition("<locals>.")[2])
        cuts = self._monitoring.cuts_step_functions
        return self._step_region("function", function, name, place, parts, may_be_cut=cuts)

    def name_of_step(self, what: str, function: str) -> str:
        """A name for a training loop or a closure in ``function``, a qualified name."""
        where = function.rpartition("<locals>.")[2]
        return self._numbered(what if where == "<module>" else f"{what} of {where}")

    def step_in(self, function: FunctionType, name: str, place: tuple[str, int], parts: Sequence[Any]) -> Any:
        """The region, on trial, of a step's statements in a loop or a function; None: not possible."""
        self._monitoring.start()
        return self._step_region("step", function, name, place, parts, may_be_cut=True)

    def _step_region(
        self, kind: str, target: FunctionType, name: str, place: tuple[str, int], parts: Sequence[Any], *, may_be_cut: bool
    ) -> Any:
        make, key = self._monitoring.step_function, ("step", next(self._keys))
        return self.find_or_none(
            lambda: make(key, name=name, place=place, target=target, parts=list(parts), kind=kind, may_be_cut=may_be_cut)
        )


def _caller() -> FrameType | None:
    """The calling frame: the nearest one that is neither ours nor torch's wrapper around ``step``."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        filename = frame.f_code.co_filename
        if not is_ours(filename) and not filename.endswith(("torch/optim/optimizer.py", "torch/optim/lr_scheduler.py")):
            return frame
        frame = frame.f_back
    return None
