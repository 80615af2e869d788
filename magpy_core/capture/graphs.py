"""The compiled segments of a capture: each is compiled at its first call. Key type: CompiledGraphs."""

from __future__ import annotations

import functools
import math
import re
import threading
import time
import weakref
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
import torch.fx

from magpy_core._compat.torch.data_parallel import collectives_run
from magpy_core._compat.torch.fake import guard_namespace
from magpy_core._compat.torch.inductor import compile_alone
from magpy_core._compat.torch.surroundings import in_cuda_graph
from magpy_core.backends import background, get_backend, stored
from magpy_core.backends.base import CompiledGraph
from magpy_core.backends.cache import loading
from magpy_core.backends.fakes import make_fake_inputs
from magpy_core.capture.compilers import compiled_wrongly, sparse_input
from magpy_core.capture.outcome import CaptureFailed, NotReady, WrongResult
from magpy_core.capture.settings import Settings
from magpy_core.capture.stored_segments import StoredSegments
from magpy_core.capture.structure import Structure
from magpy_core.capture.undo import restore_input
from magpy_core.findings import Unsupported
from magpy_core.limits import LIMITS
from magpy_core.opgraph.replicas import groups_in
from magpy_core.opgraph.segments import Segment
from magpy_core.recording.trace import Trace
from magpy_core.refgraph.kinds import is_a
from magpy_core.verification import Sample, Verdict, check
from magpy_core.verification.bisect import bisect
from magpy_core.verification.origin import FirstDifference
from magpy_core.verification.wording import describe

_COMPILING = threading.RLock()
_ONE_VALUE = re.compile(r"L\[(?P<index>\d+)\](\.size\(\)\[(?P<dim>\d+)\])? == (?P<value>-?\d+)")  # a check of a backend
_WRITING: defaultdict[str, threading.RLock] = defaultdict(threading.RLock)  # by region


@dataclass(frozen=True)
class _Stub:
    """Stands for a segment until its first call. Refers weakly to the graphs, which hold it."""

    graphs: weakref.ref[CompiledGraphs]
    index: int

    def __call__(self, inputs: list[Any]) -> Any:
        graphs = self.graphs()
        assert graphs is not None, "a capture's functions are called through the capture"
        return graphs.compile_and_call(self.index, inputs)


class _Sampled:
    """Runs a segment's code, and compares one call in ``every`` with eager mode before that. It is never replaced itself, as
    `_Improving`."""

    def __init__(self, graphs: CompiledGraphs, index: int, fn: Callable[[list[Any]], Any], every: int) -> None:
        self._graphs, self._index, self._fn, self._every = weakref.ref(graphs), index, fn, every
        self._calls = 0

    def __call__(self, inputs: list[Any]) -> Any:
        self._calls += 1
        if self._calls % self._every == 0 and (graphs := self._graphs()) is not None:
            graphs.sample(self._index, self._fn, inputs)
        return self._fn(inputs)


class _Improving:
    """Runs a segment's first compiled code while better code is compiled in the background, then the better code. It is
    never replaced itself, because generated functions with a separate namespace call it too."""

    def __init__(self, graphs: CompiledGraphs, index: int, fn: Callable[[list[Any]], Any]) -> None:
        self.fn = fn
        self.is_final = False
        self._graphs, self._index = weakref.ref(graphs), index
        self._calls = 0

    def __call__(self, inputs: list[Any]) -> Any:
        if not self.is_final:
            self._calls += 1
            if self._calls % LIMITS.better_code_interval == 0 and (graphs := self._graphs()) is not None:
                return graphs.improve_and_call(self._index, inputs, self)
        return self.fn(inputs)


@dataclass
class Awaited:
    """How long code has been awaited: ``since`` when, in how many ``calls`` in eager mode, which took ``seconds``;
    ``since_used``: the processor time then. ``may_load``: false if something is to be found out first when it
    ``has_arrived``. ``is_unproven``: what was recorded is to be compared with a call of the program's first."""

    since: float = field(default_factory=time.monotonic)
    since_used: float = field(default_factory=time.process_time)
    calls: int = 0
    seconds: float = 0.0
    may_load: bool = True
    has_arrived: bool = False
    is_unproven: bool = False
    undecided: dict[int, tuple[Callable[[list[Any]], Any], int]] = field(default_factory=dict)
    """By segment: code that could not be compared, as the data took another path, and in how many calls it could not."""

    def share(self) -> float:
        """The part of the time since then that the calls took."""
        return min(self.seconds / max(time.monotonic() - self.since, 1e-9), 1.0)

    def busy(self) -> float:
        """The seconds since then in which one thread of the program could run: others may have had the processors."""
        return min(time.monotonic() - self.since, time.process_time() - self.since_used)


def _kinds(segment: Segment) -> int:
    """How many operations of a segment differ: a compiler compiles equal ones once, as in equal layers."""
    return len({(node.target, node.meta.get("magpy_tensor")) for node in segment.nodes})


def _learns(segment: Segment, inputs: tuple[Any, ...]) -> bool:
    """Whether autograd calls the segment's code: no backward pass is part of it."""
    if not torch.is_grad_enabled() or any(node.target is torch.autograd.grad for node in segment.nodes):
        return False
    return any(one.requires_grad for one in inputs if is_a(one, torch.Tensor))


def _is_distributed() -> bool:
    """Whether other processes may wait for this one."""
    return torch.distributed.is_available() and torch.distributed.is_initialized()


class CompiledGraphs:
    """Puts ``graph0``, ``graph1``, ... into the namespace of the generated functions: first a stub, which compiles its
    segment for the inputs of its first call, then the compiled callable. Checks that backends add become ``shapes_ok``, or
    ``shapes_ok<i>``, if they are about results of earlier segments."""

    def __init__(
        self, trace: Trace, structure: Structure, settings: Settings, names: dict[str, Any], kept: frozenset[torch.fx.Node]
    ) -> None:
        self._trace, self._structure, self._settings, self._kept = trace, structure, settings, kept
        self._names = names
        self._checks: list[tuple[Sequence[Any], list[int]]] = []
        # of each segment that has operations, how many of the settings' tunings it has been compiled with
        self._stages = {i: 0 for i, s in enumerate(structure.segments) if s.outputs or s.nodes}
        self._compilations: dict[tuple[int, int], background.Compilation] = {}  # by segment and stage
        self.stored = StoredSegments(settings.is_known_slower)
        self.verdicts: dict[int, Verdict] = {}  # by segment: how its code compared with eager mode
        self.samples: list[Sample] = []  # of later calls
        self.awaited = Awaited()
        self.compile_seconds: float | None = None
        self.generated_code: list[str] = []
        self.of_segments: dict[int, CompiledGraph] = {}
        names["shapes_ok"] = _any_shapes
        for i in range(len(structure.segments)):
            names[f"graph{i}"], names[f"shapes_ok{i}"] = _Stub(weakref.ref(self), i), _any_shapes

    @property
    def bare_callable(self) -> Callable[..., Any]:
        """The backend's callable of the first segment, without guards and replay: its inputs must be such as the guard lets
        pass. It must have run once."""
        return self.of_segments[0].fn

    @property
    def is_strict(self) -> bool:
        """Whether results must be eager mode's bit by bit."""
        return self._settings.verify.strict

    @property
    def is_ready(self) -> bool:
        """Whether every segment has been compiled."""
        return self.stage > 0

    @property
    def stage(self) -> int:
        """How many of the settings' tunings every segment has been compiled with."""
        return min(self._stages.values(), default=self.last_stage)

    @property
    def last_stage(self) -> int:
        return len(self._settings.tunings)

    def compile_and_call(self, index: int, inputs: list[Any]) -> Any:
        """The first call of segment ``index``: the compiled segment replaces its stub."""
        name = f"graph{index}"
        with _COMPILING:
            fn = self._names[name]
            if isinstance(fn, _Stub):
                if in_cuda_graph():
                    raise NotReady
                unproven, _ = self.awaited.undecided.get(index, (None, 0))
                compiled = unproven or self._compiled(index, tuple(inputs), 0)
                if compiled is None:
                    raise NotReady
                is_final = self._stages[index] == self.last_stage
                self._verify(index, compiled, inputs)
                self.awaited.undecided.pop(index, None)
                fn = compiled if is_final else _Improving(self, index, compiled)
                if (every := self._settings.verify.every) and self._settings.backend == "inductor":
                    fn = _Sampled(self, index, fn, every)
                self._names[name] = fn
        return self._first_call(index, fn, inputs)

    def improve_and_call(self, index: int, inputs: list[Any], improving: _Improving) -> Any:
        """A call of segment ``index``. If better code is ready, it is used from now on; if compiling it fails, or its first
        run, the previous code stays."""
        with _COMPILING:
            before = improving.fn
            if improving.is_final or in_cuda_graph():
                return before(inputs)
            try:
                better = self._compiled(index, tuple(inputs), 1)
                if better is not None:
                    self._verify(index, better, inputs)
            except CaptureFailed as failure:
                if isinstance(failure, WrongResult):
                    self._settings.differences.on_wrong(failure)
                improving.is_final, better = True, None
                self._stages[index] = self.last_stage
            if better is None:
                return before(inputs)
            improving.fn, improving.is_final = better, True
        try:
            return self._first_call(index, better, list(inputs))
        except CaptureFailed:
            improving.fn = before
            return before(inputs)
        except Exception:  # the caller undoes what it has written, and runs the call in eager mode
            improving.fn = before
            raise

    def _verify(self, index: int, fn: Callable[[list[Any]], Any], inputs: Sequence[Any]) -> None:
        """Compares ``fn``, compiled code of segment ``index``, with eager mode. Raises CaptureFailed if they differ by more
        than rounding explains, and NotReady if the data takes another path in this call: then nothing has run but copies."""
        stage = self._stages[index] - 1
        plan = self._settings.verify
        if not plan.first or self._settings.backend != "inductor":
            return
        if self.stored.is_verified(index, stage) and not plan.strict:
            self.verdicts[index] = Verdict(0.0)
            return
        verdict = self._compared(index, fn, inputs)
        self._settings.differences.on_verified(verdict.seconds)
        _, tries = self.awaited.undecided.get(index, (None, 0))
        if verdict.is_undecided and not stage and tries < LIMITS.verify_tries:
            self.awaited.undecided[index] = fn, tries + 1
            raise NotReady
        if verdict.difference is None or not stage:  # better code that is wrong is not used
            self.verdicts[index] = verdict
        self._refuse_wrong(index, stage, verdict, inputs)
        if not verdict.unchecked:
            self.stored.verified(index, stage, is_right=True)

    def sample(self, index: int, fn: Callable[[list[Any]], Any], inputs: Sequence[Any]) -> None:
        """Compares a later call of segment ``index`` with eager mode. Raises as `_verify`, unless only the first difference
        is looked for."""
        first = self._settings.verify.first_difference
        if first is not None and not first.wants(self._settings.step() + 1):
            return
        start = time.perf_counter()
        try:
            self._sample(index, fn, inputs, first)
        finally:
            self._settings.differences.on_sampled(time.perf_counter() - start)

    def _sample(
        self, index: int, fn: Callable[[list[Any]], Any], inputs: Sequence[Any], first: FirstDifference | None
    ) -> None:
        with _COMPILING:
            verdict = self._compared(index, fn, inputs)
            if first is not None:
                segment = self._structure.segments[index]
                first.look(verdict, _module(segment, tuple(inputs)), inputs, self._settings.step() + 1)
                return
            if verdict.is_undecided:
                return
            self.samples.append(Sample(self._settings.step(), index, verdict))
            if len(self.samples) > LIMITS.most_samples:
                del self.samples[1::2]
            self._refuse_wrong(index, self._stages[index] - 1, verdict, inputs, has_served=self._settings.verify.every > 1)

    def _compared(self, index: int, fn: Callable[[list[Any]], Any], inputs: Sequence[Any]) -> Verdict:
        segment = self._structure.segments[index]
        mutated = {id(source) for source in self._trace.writes.mutated}
        written = {  # results of earlier segments are copied, too: what writes them is not among the recorded writes
            i for i, n in enumerate(segment.inputs) if n.op != "placeholder" or id(n.meta.get("magpy_source")) in mutated
        }
        settings = self._settings
        gm, strict = _module(segment, tuple(inputs)), settings.verify.strict
        return check(gm, fn, inputs, written, same_random=settings.same_random, strict=strict)

    @property
    def _to_verify(self) -> float:
        """Seconds that comparing newly compiled code will take at least: a call in eager mode, and one of the code."""
        awaited = self.awaited
        return 2 * awaited.seconds / max(awaited.calls, 1) if self._settings.verify.first else 0.0

    def _refuse_wrong(
        self, index: int, stage: int, verdict: Verdict, inputs: Sequence[Any], *, has_served: bool = False
    ) -> None:
        if verdict.difference is None:
            return
        plan, segment = self._settings.verify, self._structure.segments[index]
        cause, tracing = None, None
        if not plan.strict:  # other bits may be right for a run that is less strict
            self.stored.verified(index, stage, is_right=False)
        what = describe(verdict.difference, segment, has_served=has_served)
        if plan.folder:
            cause = bisect(_module(segment, tuple(inputs)), inputs, Path(plan.folder))
        elif (tracings := self._settings.differences.tracings) is not None and not plan.strict:  # which rounding explains
            tracing = tracings.start(_module(segment, tuple(inputs)), inputs)
        raise WrongResult(what.text, what.location, cause, tracing)

    def _first_call(self, index: int, fn: Callable[[list[Any]], Any], inputs: list[Any]) -> Any:
        nodes = self._structure.segments[index].inputs
        written = [value for node, value in zip(nodes, inputs, strict=True) if node in self._kept]
        return first_run(fn, inputs, written, groups_in(self._trace.graph)) if written else fn(inputs)

    def _compiled(self, index: int, inputs: tuple[Any, ...], stage: int) -> Callable[[list[Any]], Any] | None:
        """Segment ``index``, compiled with the tuning of ``stage``; None if it is still being compiled in the background.
        Raises CaptureFailed."""
        start, last = time.perf_counter(), self.last_stage - 1
        if stage < last and (best := self._stored(index, inputs, last)) is not None:
            return self._adopted(index, inputs, last, best, start)
        compiled = self._stored(index, inputs, stage)
        if compiled is None and self._settings.background:
            if not self._has_been_compiled(index, inputs, stage):
                return None
            compiled = self._stored(index, inputs, stage, again=True)  # that process has stored it, if it can be
            result = self._compilations[index, stage].result
            # While the code of an earlier stage runs, no calls are plain.
            plain_seconds = math.inf if stage else self.awaited.seconds
            if compiled is None and not self._settings.affords(result.to_load + self._to_verify, plain_seconds):
                return None
            if compiled is None and not (stage or self.awaited.may_load):  # while code serves, its path is known
                self.awaited.has_arrived = True
                return None
            self.compile_seconds = (self.compile_seconds or 0.0) + result.seconds
        with loading() if self._settings.background else nullcontext():
            return self._adopted(index, inputs, stage, compiled, start)

    def _stored(self, index: int, inputs: tuple[Any, ...], stage: int, *, again: bool = False) -> CompiledGraph | None:
        """As `StoredSegments.find`."""
        segment = self._structure.segments[index]
        return self.stored.find(index, stage, inputs, lambda: self._key(segment, inputs, stage), again=again)

    def _key(self, segment: Segment, inputs: tuple[Any, ...], stage: int) -> str | None:
        """What the segment's code is stored as; None if it is not."""
        settings = self._settings
        if settings.backend != "inductor" or segment.expected:  # a test of the program's data, as a closure
            return None
        try:
            return stored.key_of(
                _module(segment, inputs),
                inputs,
                self._dims(segment, inputs),
                same_random=settings.same_random,
                tuning=settings.tunings[stage],
                checked=self._are_checked(segment),
            )
        except Exception as error:  # of a tensor that can't be asked: it is compiled
            stored.note(error)
            return None

    def _has_been_compiled(self, index: int, inputs: tuple[Any, ...], stage: int) -> bool:
        """Whether a background compilation has stored segment ``index``, or put it into the compilers' caches; starts the
        compilation if needed. Raises CaptureFailed."""
        segment = self._structure.segments[index]
        if (compilation := self._compilations.get((index, stage))) is None:
            self._refuse(segment, inputs)
            sizes = _kinds(segment), len(segment.nodes)
            compilation = self._compilations[index, stage] = background.QUEUE.add(
                *sizes, improves=stage > 0, learns=_learns(segment, inputs)
            )
            weakref.finalize(self, compilation.cancel).atexit = False

        def work() -> bool:
            key = self._key(segment, inputs, stage)
            if key is not None and stored.load(key, inputs) is not None:
                return True
            with compile_alone():
                compiled = self._run_backend(segment, inputs, stage)
            if key is not None:
                stored.save(key, compiled)
            return False

        if compilation.state == "waiting" and not self._is_worthwhile():
            return False
        has_ended = background.QUEUE.poll(compilation, work)
        if not has_ended and compilation.is_better_alone and not _is_distributed():
            has_ended = self._waited_for(compilation)
        if not has_ended:
            return False
        if compilation.result.code:
            found = compilation.result
            raise CaptureFailed(found.code, found.message, "", found.location, found.path)
        return True

    def _waited_for(self, compilation: background.Compilation) -> bool:
        """Whether it has ended; the program has waited for that."""
        self._settings.on_compiling(self._settings.region_id)
        try:
            seconds = compilation.wait_for()
        finally:
            self._settings.on_compiling("")
        self._settings.differences.on_granted(seconds)
        return compilation.ended()

    def _is_worthwhile(self) -> bool:
        return self._settings.is_worthwhile(self.awaited.seconds, time.monotonic() - self.awaited.since)

    @property
    def compiler_share(self) -> float | None:
        """The part of a core that the process got that compiles; None: none is running."""
        shares = (share for one in self._compilations.values() if (share := one.core_share()) is not None)
        return max(shares, default=None)

    @property
    def parts(self) -> tuple[int, int]:
        """How many of the parts that are compiled separately are done, and how many there are. A graph that waits is one."""
        found = []
        for index, stage in self._stages.items():
            compilation = self._compilations.get((index, 0))
            done, known = (0, 1) if compilation is None else compilation.parts
            found.append((known, known) if stage else (done, known))
        return sum(done for done, _ in found), sum(known for _, known in found)

    @property
    def is_compiling(self) -> bool:
        """Whether a segment without compiled code is being compiled in the background or waits in the queue."""
        compilations = (compilation for (_, stage), compilation in self._compilations.items() if stage == 0)
        return any(compilation.state in ("waiting", "running") for compilation in compilations)

    @property
    def is_due(self) -> bool:
        """Whether other code is on its way: a segment is being compiled, or waits while calls come that are worth it."""
        compilations = [one for one in self._compilations.values() if not one.is_held]
        states = {one.state for one in compilations if one.state == "running" or one.is_wanted}
        return "running" in states or ("waiting" in states and self._is_worthwhile())

    @property
    def costs_too_much(self) -> bool:
        """Whether compiling a segment that has no code would take more time than its code saves, as things are now."""
        held = any(compilation.is_held for compilation in self._compilations.values())
        return held or (self.progress == "waiting" and not self._is_worthwhile())

    @property
    def progress(self) -> Literal["running", "waiting", "ready", ""]:
        """The state of its least advanced segment; empty: none has been called yet."""
        states = {compilation.state for compilation in self._compilations.values()}
        if "running" in states or "waiting" in states:
            return "running" if "running" in states else "waiting"
        return "ready" if self.of_segments and self.is_ready else ""

    @property
    def background_seconds(self) -> float:
        """How long compiling in the background has taken."""
        return sum(compilation.result.seconds for compilation in self._compilations.values() if compilation.state == "done")

    @property
    def plain(self) -> tuple[int, float]:
        """The calls that ran in eager mode because these graphs were not ready, and their seconds."""
        return self.awaited.calls, self.awaited.seconds

    def ran_plain(self, seconds: float, calls: int = 1) -> None:
        """So many calls ran in eager mode because these graphs are not ready."""
        self.awaited.calls += calls
        self.awaited.seconds += seconds
        awaited = self.awaited
        share, elapsed = awaited.share(), awaited.busy()
        for compilation in self._compilations.values():  # none of a second stage has started
            compilation.seconds += seconds
            compilation.ran_plain(awaited.calls, share, elapsed)

    def _refuse(self, segment: Segment, inputs: tuple[Any, ...]) -> None:
        if (reason := compiled_wrongly(self._settings.backend, inputs, segment.outputs, self._trace)) is not None:
            raise CaptureFailed("MP916", reason)
        if (position := sparse_input(self._settings.backend, inputs)) is not None:
            raise CaptureFailed(
                "MP902",
                f"Inductor can't compile a graph with a sparse tensor, and `{segment.inputs[position].name}` is one.",
                "Make it dense with `.to_dense()` where its size allows that, or put what computes with it into a separate "
                "module, so that the others are compiled.",
            )

    def _adopted(
        self, index: int, inputs: tuple[Any, ...], stage: int, compiled: CompiledGraph | None, start: float
    ) -> Callable[..., Any]:
        """The callable of one segment, if necessary compiled now: takes its inputs as one list (and may empty it).
        ``start``: when this began. Raises CaptureFailed."""
        segment = self._structure.segments[index]
        self._refuse(segment, inputs)
        if compiled is None:
            compiled = self._compile(segment, inputs, stage)
        if compiled.generated_code:
            self.generated_code.append(compiled.generated_code)
        if guards := [*compiled.guards, *self._ones_inside(segment, inputs)]:
            self._add_check(segment, guards)
        self.compile_seconds = (self.compile_seconds or 0.0) + time.perf_counter() - start
        self.of_segments[index], fn = compiled, compiled.fn
        self._stages[index] = stage + 1
        boxed = compiled.boxed or (lambda inputs: fn(*inputs))
        return functools.partial(_call_locked, _WRITING[self._settings.region_id], boxed) if self._writes(segment) else boxed

    def _compile(self, segment: Segment, inputs: tuple[Any, ...], stage: int) -> CompiledGraph:
        """Compiles the segment here and now, and stores it. Raises CaptureFailed."""
        if self._settings.background:  # it is in the compilers' caches
            return self._run_backend(segment, inputs, stage)
        key = self._key(segment, inputs, stage)
        self._settings.on_compiling(self._settings.region_id)
        try:
            compiled = self._run_backend(segment, inputs, stage)
            if key is not None:
                stored.save(key, compiled)
        finally:
            self._settings.on_compiling("")
        return compiled

    def _writes(self, segment: Segment) -> bool:
        """Whether the compiled segment reads tensors from outside at its start and writes them at its end, so that only one
        thread may run it at a time. The eager backend writes them operation by operation, as the program does."""
        mutated = {id(source) for source in self._trace.writes.mutated}
        return self._settings.backend != "eager" and any(id(n.meta.get("magpy_source")) in mutated for n in segment.inputs)

    def _run_backend(self, segment: Segment, inputs: tuple[Any, ...], stage: int) -> CompiledGraph:
        gm = _module(segment, inputs)
        backend, dims = self._settings.backend, self._dims(segment, inputs)
        try:
            fakes = make_fake_inputs(inputs, dims or None)
            settings = self._settings
            return get_backend(backend).compile(
                gm,
                fakes,
                same_random=settings.same_random,
                tuning=settings.tunings[stage],
                checked=self._are_checked(segment),
            )
        except Unsupported as error:
            raise CaptureFailed(error.code, error.message, error.hint, error.location, error.path) from error
        except Exception as error:  # a compiler may raise anything; the program continues in eager mode
            what = f"{type(error).__name__}: {str(error)[:160]}"
            raise CaptureFailed("MP902", f"The backend {backend} failed to compile the region ({what}).") from error

    def _are_checked(self, segment: Segment) -> bool:
        """Whether the guard compares the sizes and strides of all inputs with those that the segment is compiled for. Where
        inputs share memory, AOTAutograd may pass the tensor that they are views of, which no guard compares."""
        tensors = self._trace.tensors
        if len({tensor.memory for tensor in tensors}) < len(tensors):
            return False
        guarded = {id(tensor.source) for tensor in tensors if not tensor.dims}
        sources = {input.node: input.source for input in self._trace.inputs}
        numbers = {node for node, _ in self._trace.numbers}
        return all(node in numbers or (node in sources and id(sources[node]) in guarded) for node in segment.inputs)

    def _dims(self, segment: Segment, inputs: tuple[Any, ...]) -> dict[int, set[int]]:
        """The dimensions of each input that may vary; for the result of another segment, all that aren't 1 now."""
        dims: dict[int, set[int]] = {}
        for i, (node, value) in enumerate(zip(segment.inputs, inputs, strict=True)):
            if self._trace.dims and is_a(value, torch.Tensor):
                inner = node.op != "placeholder"
                known = () if inner else self._trace.dims.get(node.meta["magpy_source"].path, ())
                dims[i] = {d for d, n in enumerate(value.shape) if (n > 1 if inner else d in known)}
        return {i: varying for i, varying in dims.items() if varying}

    def _ones_inside(self, segment: Segment, inputs: tuple[Any, ...]) -> list[str]:
        """Checks of the sizes that are 1 in results of earlier segments, for which code is made even if others vary."""
        inner = [(i, v) for i, (n, v) in enumerate(zip(segment.inputs, inputs, strict=True)) if n.op != "placeholder"]
        tensors = [(i, value) for i, value in inner if self._trace.dims and is_a(value, torch.Tensor)]
        return [f"L[{i}].size()[{d}] == 1" for i, value in tensors for d, n in enumerate(value.shape) if n == 1]

    def fixed(self, inputs: Sequence[Any]) -> tuple[torch.fx.Node, str, str] | None:
        """An input, one of these graph ``inputs``, that compiled code was made for one value of, which this is not: the
        input's node, the value that the code is for, and this one."""
        names = dict(guard_namespace())
        for guards, positions in self._checks:
            given = [inputs[position] for position in positions]
            for guard in guards:
                fixed = _ONE_VALUE.fullmatch(guard)
                if fixed is None or eval(guard, names, {"L": given}):
                    continue
                index, value = int(fixed["index"]), given[int(fixed["index"])]
                now = str(value.shape[int(fixed["dim"])] if fixed["dim"] else value)
                return self._structure.placeholders[positions[index]], fixed["value"], now
        return None

    def _add_check(self, segment: Segment, guards: Sequence[str]) -> None:
        position = {n: i for i, n in enumerate(self._structure.placeholders)}
        if all(n in position for n in segment.inputs):
            self._checks.append((guards, [position[n] for n in segment.inputs]))
            self._names["shapes_ok"] = shape_check(self._checks)
        else:  # it takes results of earlier ones, whose sizes are known when these have run
            check = shape_check([(guards, [*range(len(segment.inputs))])])
            self._names[f"shapes_ok{self._structure.segments.index(segment)}"] = check


def _module(segment: Segment, inputs: tuple[Any, ...]) -> torch.fx.GraphModule:
    """The segment alone, whose inputs know whether they are numbers."""
    gm = segment.module()
    for node, value in zip(gm.graph.find_nodes(op="placeholder"), inputs, strict=True):
        if not is_a(value, torch.Tensor):
            node.meta["magpy_scalar"] = type(value)
    return gm


def _call_locked(lock: threading.RLock, fn: Callable[[list[Any]], Any], inputs: list[Any]) -> Any:
    with lock:
        return fn(inputs)


def _any_shapes(values: Any) -> bool:
    return True


def shape_check(checks: Sequence[tuple[Sequence[str], list[int]]]) -> Callable[[Any], bool]:
    """One function of all graph inputs that checks each segment's backend guards (expressions, positions of their
    inputs)."""
    compiled = [
        (eval(f"lambda L: {' and '.join(f'({g})' for g in guards)}", dict(guard_namespace())), positions)
        for guards, positions in checks
    ]

    def check(inputs: Any) -> bool:
        return all(fn([inputs[p] for p in positions]) for fn, positions in compiled)

    return check


def first_run(
    fn: Callable[[list[Any]], Any], inputs: list[Any], written: Sequence[torch.Tensor], groups: Sequence[str] = ()
) -> Any:
    """``fn(inputs)``. If it raises, the ``written`` tensors are restored and CaptureFailed (MP902) is raised; the error
    itself if it has communicated in ``groups`` of processes.

    Recorded operations that raise only for what a guard checks need no copies of what they change. Compiled code needs them:
    if torch's wrapper around it raises (for example because it can't rebuild a view of an output), the inputs have already
    been changed."""
    try:
        saved = [(tensor, tensor.detach().clone()) for tensor in written]
    except torch.OutOfMemoryError:
        saved = []  # memory is short and the graph hardly ever raises: run without copies, as in every later run
    collectives = collectives_run(groups)
    try:
        return fn(inputs)
    except Exception as error:
        for tensor, backup in saved:
            restore_input(tensor, backup)
        if collectives_run(groups) != collectives:
            raise
        what = f"{type(error).__name__}: {str(error)[:160]}"
        raise CaptureFailed("MP902", f"The compiled graph of the region failed on its first run ({what}).") from error
