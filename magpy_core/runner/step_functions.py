"""Finds step functions: the innermost function that ran both a backward pass and an optimizer's step, in one of its calls.

From its next call on it is a region, in place of the modules and optimizers inside it. For that, code that stands in for the
function's own is put into the function object, which reaches closures and bound methods, too. A function that steps
the same optimizer twice in a call has the loop inside: it stays as it is. One that can't be captured is cut where it was
refused. If no whole step is left, it stays as it is, after a few more calls have shown how much of a step is in no graph.
Key type: StepFunctions.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from types import CodeType, FrameType, FunctionType
from typing import Any, Protocol

from magpy_core._compat.cpython.stand_in import can_stand_in, stand_in
from magpy_core.limits import LIMITS
from magpy_core.runner.step_bodies import FunctionCut, Steps, release_bodies
from magpy_core.runner.tracebacks import hide_frames_of, is_ours

_Activation = tuple[int, CodeType]


class FunctionSteps(Steps, Protocol):
    def step_function(self, function: FunctionType, parts: Sequence[Any]) -> Any: ...


class _Function:
    """A function object with a code that stands in for its own. The code calls ``self @ (args, kwargs)``."""

    def __init__(self, finder: StepFunctions, function: FunctionType, first: _Activation) -> None:
        self._finder, self._function, self._first = finder, function, first
        code = function.__code__
        self.target = FunctionType(
            code, function.__globals__, function.__name__, function.__defaults__, function.__closure__
        )
        self.target.__qualname__, self.target.__module__ = function.__qualname__, function.__module__
        self._trial: Any = None
        self._cut: FunctionCut | None = None
        self._is_cut = False
        self._between: list[float] = []
        self.calls = 0
        self._stand_in: CodeType | None = stand_in(code, self)
        function.__code__ = self._stand_in
        hide_frames_of(self._stand_in)

    def __matmul__(self, given: tuple[tuple[Any, ...], dict[str, Any]]) -> Any:
        self.calls += 1
        args, kwargs = given
        if self._finder.steps.rest.is_on:
            return self._finder.steps.rest.call(self.target, args, kwargs)
        if not self._finder.steps.is_outermost():
            return self.target(*args, **kwargs)
        steps = self._finder.steps
        if self._trial is None:
            self._trial = steps.step_function(self.target, self._finder.parts(self._first))
            if self._trial is None:
                self.restore()
                return self.target(*args, **kwargs)
            self._cut = FunctionCut(self.target.__code__, self._trial, self._finder.parts(self._first), steps)
        if not self._is_cut and self._trial.may_be_cut:
            steps.find_or_none(self._cut_or_not)
        if self._is_cut:
            return self.target(*args, **kwargs)
        if self._trial.is_refused:
            return self._timed(args, kwargs)
        return steps.call_function(self._trial.region, args, kwargs)

    def _cut_or_not(self) -> None:
        """From now on, a part of the function that runs a whole step is a region, if it can't be one as a whole."""
        made = self._cut.made() if self._cut is not None else None
        if made is not None:
            self.target.__code__ = made
            self._is_cut = True
            self.restore()

    def _timed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call whose parts are regions: how long it was in none of them, nor in a backward pass."""
        start, within = perf_counter(), self._finder.within
        result = self.target(*args, **kwargs)
        self._between.append(perf_counter() - start - (self._finder.within - within))
        if len(self._between) >= LIMITS.fewest_functions:
            self._trial.cost(1e3 * median(self._between))
        if len(self._between) >= LIMITS.timed_functions:
            self.restore()
        return result

    def restore(self) -> None:
        """The function's own code again, or what it was cut to."""
        if self._function.__code__ is self._stand_in:  # or the program has replaced it
            self._function.__code__ = self.target.__code__

    def release(self) -> None:
        """The end: its code and this object hold each other."""
        self.restore()
        if self._cut is not None:
            self._cut.release()
        self._trial = self._cut = self._stand_in = None

    @property
    def is_refused(self) -> bool:
        return self._is_cut or (self._trial is not None and self._trial.is_refused)


@dataclass
class _Candidate:
    """A code that ran a whole step: its function objects, and the optimizers (by identity) that a call of it stepped."""

    functions: list[_Function]
    optimizers: set[int]

    @property
    def is_settled(self) -> bool:
        return not self.functions or any(function.is_refused for function in self.functions)

    @property
    def is_called_again(self) -> bool:
        return any(function.calls for function in self.functions)

    def give_up(self) -> None:
        for function in self.functions:
            function.restore()
        self.functions = []


class _Local(threading.local):
    passed: frozenset[_Activation] = frozenset()
    """The calls that were running during the last backward pass."""
    depth = 0
    began = within = 0.0
    """When the current backward pass or call of a region began; how many seconds they have taken."""


class StepFunctions:
    """Told of backward passes, calls of regions and optimizer steps."""

    def __init__(self, steps: FunctionSteps) -> None:
        self.steps = steps
        self._local = _Local()
        self._candidates: dict[CodeType, _Candidate] = {}
        self._parts: dict[int, tuple[frozenset[_Activation], Any]] = {}
        """Regions by identity, with the calls that were running when they were last given to a module or optimizer."""

    @property
    def within(self) -> float:
        return self._local.within

    def release(self) -> None:
        """Forgets all functions, which get their own code: the collector does not see that code holds what stands in."""
        for function in [one for candidate in self._candidates.values() for one in candidate.functions]:
            function.release()
        self._candidates, self._parts, self._local = {}, {}, _Local()
        release_bodies()

    def enters(self) -> None:
        """A backward pass or the call of a region begins."""
        local = self._local
        if not local.depth:
            local.began = perf_counter()
        local.depth += 1

    def leaves(self) -> None:
        local = self._local
        local.depth -= 1
        if not local.depth:
            local.within += perf_counter() - local.began

    def passes_back(self) -> None:
        """A backward pass begins. One in a region, as in the step of an optimizer with a closure, makes no function one that
        runs both; what ran at an earlier pass may have ended, and its frame's address be another's."""
        self._local.passed = frozenset(_running()) if self.steps.is_outermost() else frozenset()
        self.enters()

    def made(self, region: Any) -> None:
        """``region`` is that of a module or an optimizer, which is being called for the first time."""
        self._parts[id(region)] = (frozenset(_running()), region)

    def parts(self, activation: _Activation) -> list[Any]:
        """The regions that were made in a call, or in calls of it."""
        return [region for running, region in list(self._parts.values()) if activation in running]

    def call_in_parts(self, call: Callable[[], Any], parts: list[Any]) -> Any:
        """What ``call`` returns; the regions that are made in it are added to ``parts``."""
        known = set(self._parts)
        try:
            return call()
        finally:
            parts += [region for number, (_, region) in list(self._parts.items()) if number not in known]

    def stepped(self, optimizer: Any) -> None:
        """A step of ``optimizer`` has run, outside of any region of a function."""
        passed = self._local.passed
        if passed:
            frame = next((frame for frame in _frames() if (id(frame), frame.f_code) in passed), None)
            if frame is not None:
                self._ran_both(frame, id(optimizer))

    def _ran_both(self, frame: FrameType, optimizer: int) -> None:
        code = frame.f_code
        candidate = self._candidates.get(code)
        if candidate is None:
            functions = self._stand_ins(frame) if _is_candidate(frame) else []
            self._candidates[code] = _Candidate(functions, {optimizer})
        elif candidate.is_settled:
            pass
        elif candidate.is_called_again:  # and this is the call of another function object
            if len(candidate.functions) < LIMITS.most_functions:
                candidate.functions += self._stand_ins(frame)
        elif optimizer in candidate.optimizers:
            candidate.give_up()  # a second step in the same call: a loop
        else:
            candidate.optimizers.add(optimizer)

    def _stand_ins(self, frame: FrameType) -> list[_Function]:
        code, activation = frame.f_code, (id(frame), frame.f_code)
        ours = {id(function.target) for candidate in self._candidates.values() for function in candidate.functions}
        functions = [f for f in gc.get_referrers(code) if type(f) is FunctionType and f.__code__ is code]
        try:
            return [_Function(self, function, activation) for function in functions if id(function) not in ours]
        except ValueError:
            return []


def _frames() -> Iterator[FrameType]:
    """The calling frames that are not ours, innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not is_ours(frame.f_code.co_filename):
            yield frame
        frame = frame.f_back


def _running() -> Iterator[_Activation]:
    return ((id(frame), frame.f_code) for frame in _frames())


def _is_candidate(frame: FrameType) -> bool:
    """Whether a call of this function may be a region: it is no part of torch, and torch.compile has no part in it."""
    torch_folder = os.path.dirname(sys.modules["torch"].__file__ or "") + os.sep
    if not can_stand_in(frame.f_code) or frame.f_code.co_filename.startswith(torch_folder):
        return False
    caller = frame.f_back
    if caller is not None and is_ours(caller.f_code.co_filename):
        return False  # statements that are in a function of their own
    return caller is None or not caller.f_code.co_filename.startswith(torch_folder + "_dynamo")
