"""Capture: the result of one monitored run (operator graphs, guards, replay) and the generated function that runs it.

Key types: Capture, Guards, Replay.
"""

from __future__ import annotations

import functools
import itertools
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal

import torch
import torch.fx
from torch.fx.passes.shape_prop import TensorMetadata

from magpy_core._compat.torch.tensor_guards import tensor_check
from magpy_core._compat.torch.torch_state import Modes
from magpy_core.backends.cuda_graphs import Replayed
from magpy_core.capture.code import CodeWriter
from magpy_core.capture.fast_guard import FastGuard
from magpy_core.capture.graphs import CompiledGraphs
from magpy_core.capture.outcome import MISS, NotRun, PathsVary, WrongResult
from magpy_core.capture.parts import Guards, Replay
from magpy_core.capture.settings import Settings
from magpy_core.capture.structure import Structure
from magpy_core.findings import Location
from magpy_core.limits import LIMITS
from magpy_core.opgraph.places import place
from magpy_core.opgraph.segments import Segment
from magpy_core.recording.trace import Live, Trace
from magpy_core.refgraph.failure import Failure
from magpy_core.refgraph.graph import RefGraph
from magpy_core.verification import Sample, Verdict
from magpy_core.verification.recording import Rerun, rerun
from magpy_core.verification.wording import describe_recorded


def _other_path(capture: weakref.ref[Capture], count: Iterator[int]) -> None:
    """The graph of a capture that holds its writes ran in vain. Raises PathsVary if that is usual."""
    wrong, known = next(count), capture()
    if known is not None and wrong >= LIMITS.wrong_paths and wrong > known.hits:
        raise PathsVary


class Capture:
    """One capture of a region. ``run(args, kwargs)`` returns the result, MISS if the guards do not hold, or NotRun and its
    reason."""

    def __init__(self, trace: Trace, live: Live, settings: Settings) -> None:
        self.trace = trace
        self.hits = 0
        self.guard_seconds: deque[float] = deque(maxlen=64)  # of guards that held, while the region measures
        self.title = f"magpy capture of {settings.region_id}"
        self._structure = Structure.of(trace, compiled=settings.backend != "eager")
        write = functools.partial(CodeWriter, trace, self._structure, settings)
        code = write()
        self.namespace = code.names  # the globals of the generated functions, without these functions
        self.namespace["tensors"] = tensor_check(live.tensors, [tensor.dims for tensor in trace.tensors])
        if trace.counts:
            uncounted = [
                (tensor, guarded.dims)
                for tensor, guarded in zip(live.tensors, trace.tensors, strict=True)
                if not guarded.source.counted
            ]
            check = tensor_check([tensor for tensor, _ in uncounted], [dims for _, dims in uncounted])
            self.namespace["other_tensors"] = check
        self._graphs = CompiledGraphs(trace, self._structure, settings, self.namespace, code.undo.kept)
        self.namespace["other_path"] = functools.partial(_other_path, weakref.ref(self), itertools.count(1))
        exec(compile(code.lines.functions(), f"<{self.title}>", "exec"), self.namespace)
        self.guards = Guards(trace, "\n".join(code.lines.short_guard), code.checks)
        self.replay = Replay(trace.plan.effects, "\n".join(code.lines.graph + code.lines.replay))
        take = self.namespace.pop  # a reference cycle would keep the guards' constants alive until the next collection
        self.matches: Callable[[Any, Any], bool] = take("matches")
        self.gather_inputs: Callable[[Any, Any], Any] = take("gather")
        run: Callable[[Any, Any], Any] = take("run")
        take("fits", None)
        take("run_drawing", None)
        take("gather_drawing", None)
        self._instead: NotRun | None = None  # what calls that it fits get: HELD, RETIRED; None: it serves them
        self._checks_nothing = False
        proves = settings.verify.compares_recordings and settings.backend == "inductor"
        self._graphs.awaited.is_unproven = proves and self._is_straight
        self.fast_guard = FastGuard(self, run, write, may_specialize=bool(code.lines.shapes))
        self.select()

    @property
    def full_run(self) -> Callable[[Any, Any], Any]:
        """``run`` without the fast guard."""
        return self.fast_guard.full

    def select(self) -> None:
        """Sets ``run`` and ``matches``, here only: to the fast guard's, unless what fits is not to be served."""
        self.matches = matches = self.fast_guard.matches
        instead = NotRun.UNPROVEN if self._instead is None and self._graphs.awaited.is_unproven else self._instead
        self.run: Callable[[Any, Any], Any] = (
            self.fast_guard.run if instead is None else lambda args, kwargs: instead if matches(args, kwargs) else MISS
        )
        if self._checks_nothing:
            self.run = lambda args, kwargs: NotRun.RETIRED

    def rerun(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Rerun | None:
        """The recorded graph, run on copies of this call's inputs, before the program runs the call itself; once. None: it
        can't be."""
        self._graphs.awaited.is_unproven = False
        self.select()
        inputs = self.gather_inputs(args, kwargs)
        return None if inputs is MISS else rerun(self.trace, self.operator_graph, inputs)

    def prove(self, recorded: Rerun, result: Any) -> None:
        """Compares what the recorded graph has given with the ``result`` of the program's call. Raises WrongResult."""
        if (found := recorded.difference(result, strict=self._graphs.is_strict)) is not None:
            what = describe_recorded(*found)
            raise WrongResult(what.text, what.location, what.cause)

    @property
    def _is_straight(self) -> bool:
        """Whether every call that it fits runs the whole graph: no decision follows."""
        return self.is_complete and not self._structure.assertions and not self._structure.cuts

    def retire(self, *, check_guards: bool) -> None:
        """From now on, calls that it fits run in eager mode; without ``check_guards``, all calls do."""
        self._instead, self._checks_nothing = NotRun.RETIRED, not check_guards
        self.fast_guard.retire()
        self.select()

    @property
    def is_retired(self) -> bool:
        return self._instead is NotRun.RETIRED

    def require_path_check(self) -> None:
        """Before its compiled code is loaded, a call is to show whether the path is still the recorded one."""
        self._graphs.awaited.may_load = False

    @property
    def needs_path_check(self) -> bool:
        """Whether its compiled code has arrived and waits for that: it is to be held."""
        return self._graphs.awaited.has_arrived and not self._graphs.awaited.may_load

    def hold(self) -> None:
        """Compile nothing yet: calls that it fits run in eager mode."""
        if self._instead is None:
            self._instead = NotRun.HELD
            self.select()

    def release(self) -> None:
        """Undo ``hold``."""
        if self.is_held:
            self._instead = None
            self.select()
            awaited = self._graphs.awaited
            awaited.may_load = awaited.may_load or awaited.has_arrived

    @property
    def is_held(self) -> bool:
        return self._instead is NotRun.HELD

    # -- the operator graph ------------------------------------------------------------------------------------

    @property
    def segments(self) -> list[Segment]:
        return self._structure.segments

    @property
    def is_complete(self) -> bool:
        return len(self.segments) <= 1

    @property
    def holds_writes(self) -> bool:
        """Whether the graph writes nothing on a path that is not the recorded one."""
        return self._structure.holds_writes

    def cut_at(self, index: int) -> Location | None:
        """The program's line that cuts the graph after segment ``index``."""
        return self._structure.cuts[index].place

    @property
    def nodes(self) -> Iterable[torch.fx.Node]:
        """The recorded operations in order, including conditions before the graph; ``meta["magpy_site"]`` is the line."""
        return self.trace.graph.nodes

    @property
    def operator_graph(self) -> torch.fx.GraphModule:
        """The whole operator graph (one segment after the other)."""
        graph = torch.fx.Graph()
        mapping: dict[torch.fx.Node, torch.fx.Node] = {}
        for node in self.trace.graph.nodes:
            if node not in self._structure.ahead:
                mapping[node] = graph.node_copy(node, lambda n: mapping[n])
        graph.output(tuple(mapping[n] for n in self.trace.plan.outputs))
        for node in graph.find_nodes(op="placeholder"):
            if "magpy_tensor" in node.meta:  # for `print_readable`
                dtype, shape = node.meta["magpy_tensor"]
                node.meta["tensor_meta"] = TensorMetadata(torch.Size(shape), dtype, False, (), None, False, {})
        graph.lint()
        return torch.fx.GraphModule(torch.nn.Module(), graph)

    # -- inspection --------------------------------------------------------------------------------------------

    @property
    def refgraph(self) -> RefGraph:
        """What the region read and wrote outside; it no longer refers to any object."""
        return self.trace.refgraph

    @property
    def modes(self) -> Modes:
        """torch's modes in the recorded call."""
        return self.guards.modes

    def print_readable(self) -> str:
        """Graph, guards and replay as text."""
        graph = self.operator_graph.print_readable(print_output=False)
        guards = f"# guards ({len(self.guards)})\n{self.guards.code}"
        return f"# operator graph\n{graph}\n\n{guards}\n\n# replay\n{self.replay.code}\n"

    def globals_hold(self) -> bool:
        return bool(self.trace.globals_hold())

    # -- compiled code -----------------------------------------------------------------------------------------

    def fits_but_for(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Failure | None:
        """What a call that the guards let pass has another value of than its code was made for: a number, or a size; None:
        there is nothing, or the guards don't hold."""
        inputs = self.gather_inputs(args, kwargs)
        fixed = None if inputs is MISS else self._graphs.fixed(inputs)
        if fixed is None:
            return None
        node, old, new = fixed
        where = next((at for user in node.users if (at := place(user)) is not None), None)
        source = node.meta.get("magpy_source")
        if source is not None:
            return Failure("MP201", f"a size of {source.describe()}", old, new, where, source)
        sym = next(sym for number, sym in self.trace.numbers if number is node)
        return Failure("MP201", sym.describe(), old, new, where)

    @property
    def compile_seconds(self) -> float | None:
        return self._graphs.compile_seconds

    @property
    def background_seconds(self) -> float:
        """How much of it was spent in the background."""
        return self._graphs.background_seconds

    @property
    def is_compiled(self) -> bool:
        return self.compile_seconds is not None

    @property
    def is_ready(self) -> bool:
        """Whether every segment has been compiled."""
        return self._graphs.is_ready

    @property
    def stage(self) -> int:
        """How many of the settings' tunings every segment has been compiled with; ``last_stage``: all of them."""
        return self._graphs.stage

    @property
    def is_final(self) -> bool:
        """Whether no other compiled code will take over."""
        return self.stage == self._graphs.last_stage

    def ran_plain(self, seconds: float, calls: int = 1) -> None:
        """Calls that the capture fits ran in eager mode, because its graphs are being compiled in the background."""
        self._graphs.ran_plain(seconds, calls)

    @property
    def plain(self) -> tuple[int, float]:
        """How many calls did so, and their seconds."""
        return self._graphs.plain

    @property
    def plain_calls(self) -> int:
        """How many calls ran in eager mode for that reason."""
        return self._graphs.awaited.calls

    @property
    def compiler_share(self) -> float | None:
        """Of one core: what the compiler of its code has got until now, or the one that got most; None: none is running."""
        return self._graphs.compiler_share

    @property
    def parts(self) -> tuple[int, int]:
        """How many of the parts of its graphs that are compiled separately are done, and how many there are."""
        return self._graphs.parts

    @property
    def verdicts(self) -> Sequence[Verdict]:
        """How the compiled code of its graphs compared with eager mode; of those that were compared, or refused to be."""
        return list(self._graphs.verdicts.values())

    @property
    def samples(self) -> Sequence[Sample]:
        """Later calls of compiled code that were compared with eager mode."""
        return list(self._graphs.samples)

    @property
    def is_kept(self) -> bool:
        """Whether an earlier run, or another process, has compiled its code."""
        return self.is_ready and bool(self._graphs.stored.kept)

    @property
    def key(self) -> str | None:
        """What its first graph's code is stored as; None: it is not, or was not looked for."""
        return self._graphs.stored.first_key

    @property
    def is_compiling(self) -> bool:
        """Whether a graph is being compiled or waits in the queue."""
        return self._graphs.is_compiling

    @property
    def is_due(self) -> bool:
        """Whether code for its graphs is on its way."""
        return not self.is_retired and self._graphs.is_due

    @property
    def costs_too_much(self) -> bool:
        """Whether compiling its graphs would take more time than their code saves, as things are now."""
        return not self.is_retired and self._graphs.costs_too_much

    @property
    def progress(self) -> Literal["running", "waiting", "ready", ""]:
        """The state of its compilation; empty: it was never called, or is retired."""
        return "" if self.is_retired else self._graphs.progress

    @property
    def generated_code(self) -> list[str]:
        return self._graphs.generated_code

    @property
    def replayed(self) -> list[Replayed]:
        """The parts of its graphs that are on a device and may be replayed as CUDA graphs."""
        return [one.replayed for one in self._graphs.of_segments.values() if one.replayed is not None]

    @property
    def bare_callable(self) -> Callable[..., Any]:
        """The compiled callable of a complete capture, without guards and replay. It must have run once."""
        return self._graphs.bare_callable

    def __repr__(self) -> str:
        nodes = sum(1 for n in self.nodes if n.op.startswith("call"))
        parts = f"{nodes} operations, {len(self.segments)} graph(s)"
        return f"<Capture: {parts}, {len(self.guards)} guards, {len(self.replay.effects)} effects>"
