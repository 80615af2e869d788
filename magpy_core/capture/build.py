"""Capture: what one monitored run leaves — operator graph(s), guards, replay — and the generated function that runs them.

Key types: Capture, Guards, Replay.
"""

from __future__ import annotations

import functools
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch.fx

from magpy_core._compat.torch.autograd import get_modes, set_modes, switches_modes
from magpy_core._compat.torch.tensor_guards import storage_key, tensor_check
from magpy_core._compat.torch.torch_state import random_streams, restore_streams
from magpy_core.backends.fakes import fakes_from_facts, make_fake_inputs
from magpy_core.backends.registry import get_backend
from magpy_core.capture.compilers import compiled_wrongly
from magpy_core.capture.conditions import evaluator
from magpy_core.capture.fast_guard import Tagged
from magpy_core.capture.first_run import first_run
from magpy_core.capture.parts import DRAWING, CaptureFailed, Guards, Replay, restore_history, restore_input, shape_check
from magpy_core.capture.text import functions, short_functions
from magpy_core.findings import Finding, Location, Unsupported
from magpy_core.guards.codegen import GuardWriter, inline_single_uses
from magpy_core.guards.explain import TensorFacts
from magpy_core.guards.kinds import TENSOR
from magpy_core.opgraph.conditions import only_for
from magpy_core.opgraph.expected import OtherResult
from magpy_core.opgraph.raising import undo_needed
from magpy_core.opgraph.segments import Segment, split
from magpy_core.recording.ledger import Decision
from magpy_core.recording.trace import GuardedTensor, Live, Trace
from magpy_core.refgraph.draws import put_back
from magpy_core.refgraph.graph import RefGraph
from magpy_core.refgraph.kinds import is_a
from magpy_core.replay.codegen import ReplayWriter
from magpy_core.replay.ir import Outside
from magpy_core.replay.prefetch import prefetch

MISS: Any = type("MISS", (), {"__repr__": lambda self: "MISS"})()
_COMPILING = threading.RLock()
AGAIN: Any = type("AGAIN", (), {"__repr__": lambda self: "AGAIN"})()
"""``run`` raised half way and has left no trace: the call has to run as plain Python."""


def _note(site: Any) -> str:
    if site is None:
        return ""
    return f"{site.code.co_filename.rsplit('/', 1)[-1]}:{site.lineno}"


class Capture:
    """One capture of a region. ``run(args, kwargs)`` gives the call's result, or MISS when the guards do not hold."""

    def __init__(
        self, trace: Trace, live: Live, backend: str, n_args: int, kwarg_names: tuple[str, ...], same_random: bool
    ) -> None:
        self.trace = trace
        self._backend = backend
        self._same_random = same_random
        self._n_args, self._kwarg_names = n_args, kwarg_names
        self.is_dynamic = bool(trace.dims)
        self.may_specialise = self.is_dynamic or (backend != "eager" and bool(trace.numbers))
        self.hits = 0
        self.compile_seconds: float | None = None
        self.guard_seconds: deque[float] = deque(maxlen=64)  # of checks that held, while a region measures
        # On a GPU, what an assertion keeps out (an index too large) would end the process and not raise: there it is a cut.
        waits = all(tensor.facts.device.type == "cpu" for tensor in trace.inputs)
        """Whether operations of the graph decide if the capture fits, so that it may run some of them in vain."""
        self._conditions = [d for d in trace.decisions if d.condition is not None]
        self._decisions = [d for d in trace.decisions if d.condition is None and not (waits and d.asserted)]
        self._assertions = [d for d in trace.decisions if d.condition is None and waits and d.asserted]
        cuts = [d.last_node for d in self._decisions]
        wanted = self._wanted()
        self._ahead = only_for((d.condition or () for d in self._conditions), (n for nodes in wanted for n in nodes))
        self.segments: list[Segment] = split(trace.graph, cuts, wanted, self._ahead)
        self.is_complete = len(self.segments) <= 1
        self._namespace: dict[str, Any] = {}
        self._written: set[torch.fx.Node] = set()  # inputs to be put back if the compiled graph's first run fails
        self.generated_code: list[str] = []
        self._bare: dict[int, Callable[..., Any]] = {}
        self._checks: dict[int, tuple[list[Any], list[int]]] = {}
        self._facts = self._input_facts(live)
        self._tagged = Tagged(self, trace.refgraph.reads, MISS)
        self.guards, self.replay = self._generate(live)
        self.matches: Callable[[Any, Any], bool] = self._namespace["matches"]
        self.gather_inputs: Callable[[Any, Any], Any] = self._namespace["gather"]
        self.run: Callable[[Any, Any], Any] = self._namespace["run"]
        self._tagged.begin()

    # -- structure ---------------------------------------------------------------------------------------------

    def _wanted(self) -> list[list[torch.fx.Node]]:
        """Per segment: graph values Python needs after it (decision decisions); last: what the plan and assertions use."""

        asserted = [node for b in self._assertions for node in _decided_by(b)]
        return [*map(_decided_by, self._decisions), [*self.trace.plan.outputs, *asserted]]

    def cut_at(self, index: int) -> Location | None:
        """Where the program made the cut behind segment ``index``."""
        return self._decisions[index].place

    @property
    def nodes(self) -> Iterable[torch.fx.Node]:
        """The recorded operations in order, decisions ahead of the graph included; ``meta["magpy_site"]`` is the line."""
        return self.trace.graph.nodes

    @property
    def operator_graph(self) -> torch.fx.GraphModule:
        """The whole operator graph (one segment after the other); placeholders carry ``meta["example_value"]``."""
        graph = torch.fx.Graph()
        mapping: dict[torch.fx.Node, torch.fx.Node] = {}
        for node in self.trace.graph.nodes:
            if node not in self._ahead:
                mapping[node] = graph.node_copy(node, lambda n: mapping[n])
        graph.output(tuple(mapping[n] for n in self.trace.plan.outputs))
        self._examples(graph)
        graph.lint()
        return torch.fx.GraphModule(torch.nn.Module(), graph)

    def _examples(self, graph: torch.fx.Graph) -> None:
        """Set ``example_value`` on the placeholders of a copy of the graph."""
        for node, fake in zip((n for n in graph.nodes if n.op == "placeholder"), self._fakes, strict=True):
            node.meta["example_value"] = fake

    @property
    def refgraph(self) -> RefGraph:
        """What the region read and wrote outside; it holds no object any more."""
        return self.trace.refgraph

    @property
    def findings(self) -> tuple[Finding, ...]:
        return self.trace.findings

    def _dims(self, node: torch.fx.Node, tensor: torch.Tensor) -> set[int]:
        source = node.meta.get("magpy_source")
        return {d for d in self.trace.dims.get(source.path, ()) if d < tensor.dim()} if source is not None else set()

    def _input_facts(self, live: Live) -> list[Any]:
        """What the graph's inputs were at capture time: TensorFacts, or a scalar's value. A dynamic capture keeps fakes,
        whose symbolic sizes cannot be made from facts."""
        facts: dict[Any, Any] = {i.node: i.facts for i in self.trace.inputs}
        facts |= {node: sym.hint for node, sym in self.trace.numbers}
        order = [n for n in self.trace.graph.nodes if n.op == "placeholder"]
        if not self.is_dynamic:
            return [facts[n] for n in order]
        real = live.inputs
        dims = {i: d for i, n in enumerate(order) if n in real and (d := self._dims(n, real[n]))}
        return make_fake_inputs([real.get(n, facts[n]) for n in order], dims or None).fakes

    @functools.cached_property
    def _fakes(self) -> list[Any]:
        """Fake example inputs; made only when somebody looks at the operator graph."""
        if self.is_dynamic:
            return self._facts
        return fakes_from_facts(
            [
                (f.shape, f.stride, f.dtype, f.device, f.requires_grad, f.type) if isinstance(f, TensorFacts) else f
                for f in self._facts
            ]
        )

    def print_readable(self) -> str:
        """Graph, guards and replay as text."""
        graph = self.operator_graph.print_readable(print_output=False)
        guards = f"# guards ({len(self.guards)})\n{self.guards.code}"
        return f"# operator graph\n{graph}\n\n{guards}\n\n# replay\n{self.replay.code}\n"

    # -- code --------------------------------------------------------------------------------------------------

    def _generate(self, live: Live) -> tuple[Guards, Replay]:
        trace = self.trace
        w = GuardWriter(where=_note)
        kw = "" if self._kwarg_names else "kwargs or "
        shape = f"if {kw}len(args) != {self._n_args}: return MISS"
        if self._kwarg_names:
            shape = f"if len(args) != {self._n_args} or tuple(kwargs) != {w.const(self._kwarg_names)}: return MISS"
        w.lines.append(shape)
        w.lines.append("if not global_state(): return MISS")
        for source in trace.draws:  # all of them, in order, whatever becomes of the numbers
            w.var(source)
        w.write(trace.refgraph.reads)
        for group in trace.distinct:
            w.distinct(list(group))
        names = [w.var(tensor.source) for tensor in trace.tensors]
        looked_at = {id(tensor.source) for tensor in trace.tensors}
        for read in trace.refgraph.reads:  # tensors that no operation took: that they are there may have decided something
            if read.kind is TENSOR and id(read.source) not in looked_at:
                w.fail_if(f"type({w.var(read.source)}) is not {w.const(read.expected)}", read.site)
        if names:
            w.lines.append(f"if not tensors({', '.join(names)}): return MISS")
            w.checks += len(names)
        for tensor in trace.tensors:
            if tensor.dims:
                v = w.var(tensor.source)
                small = " or ".join(f"{v}.size({d}) < 2" for d in sorted(tensor.dims))
                w.fail_if(f"{small} or not {v}.is_contiguous()", None)
        self._storages(w)
        scalar_names = {n: w.scalar(sym) for n, sym in trace.numbers}
        input_names = {i.node: w.var(i.source) for i in trace.inputs}
        input_names |= scalar_names
        rw_targets = {id(e.target.source): e.target for e in self.trace.plan.effects if isinstance(e.target, Outside)}
        for target in rw_targets.values():
            w.var(target.source)
        prefetch(w, self.trace.plan)
        self._write_conditions(w, input_names)
        guard_lines = list(w.lines)
        count = w.checks
        order = [n for n in self.trace.graph.nodes if n.op == "placeholder"]
        self._inputs_in_order = order
        gather = [f"return ({', '.join(input_names[n] for n in order)}{',' if order else ''})"]
        w.lines = []
        values: dict[Any, str] = dict(input_names)
        undo = self._undo(w, input_names)
        before_lines, w.lines = w.lines, []
        for i, segment in enumerate(self.segments):
            call = f"graph{i}([{', '.join(values[n] for n in segment.inputs)}])"
            if segment.outputs:
                w.lines.append(f"out{i} = {call}")
                for k, node in enumerate(segment.outputs):
                    values[node] = f"g{i}_{k}"
                    w.lines.append(f"g{i}_{k} = out{i}[{k}]")
            elif segment.has_work:
                w.lines.append(call)
            last = i + 1 == len(self.segments)
            for decision in self._assertions if last else self._decisions[i : i + 1]:
                expr = w.scalar(decision.sym, lambda node: values[node])
                w.lines.append(
                    f"if not same({expr}, {w.const(decision.outcome)}): {undo}return MISS  # {_note(decision.site)}"
                )
        if self.trace.plan.raises and not (self._decisions or self._assertions):
            w.lines, before_lines, undo = [], [], ""  # nothing else decides whether it raises: the graph need not run
        writer = ReplayWriter(w, values)
        writer.targets = {key: live.objects[id(t.source)] for key, t in rw_targets.items()}
        result, effects = writer.values(self.trace.plan)
        graph_lines, w.lines = w.lines, []
        # nothing outside has changed yet: whatever goes wrong, plain Python can still run the call from its beginning
        failed = ["except CaptureFailed:", f"    {undo}raise", "except OtherResult:", f"    {undo}return MISS"]
        failed += ["except Exception:", f"    {undo}return AGAIN"]
        failed += ["except BaseException:", f"    {undo}raise"] if undo else []
        graph_lines = [*before_lines, "try:", *(f"    {line}" for line in graph_lines or ["pass"]), *failed]
        w.lines += [line for lines in effects for line in lines]
        # plain Python raises with a traceback of its own frames
        w.lines.append(f"{undo}return AGAIN" if self.trace.plan.raises else f"return {result}")
        replay_lines = w.lines
        return self._compile_text(w, live, guard_lines, gather, graph_lines, replay_lines, count)

    def _compile_text(
        self,
        w: GuardWriter,
        live: Live,
        guard: list[str],
        gather: list[str],
        graph: list[str],
        replay: list[str],
        count: int,
    ) -> tuple[Guards, Replay]:
        shapes = []
        if self.may_specialise:
            shapes = [f"if not shapes_ok(({', '.join(self._input_text(gather))})): return MISS"]
        used_later = [*graph, *replay, *gather]
        text = functions(inline_single_uses(guard, used_later), shapes, graph, replay, gather)
        if self.trace.draws:
            text = text.replace("def run(args, kwargs):", "def run_drawing(args, kwargs, before):")
            text = text.replace("def gather(args, kwargs):", "def gather_drawing(args, kwargs, before):") + DRAWING
        free = [tensor.dims for tensor in self.trace.tensors]
        self._namespace |= w.table
        self._namespace.update(
            MISS=MISS, global_state=self.trace.globals_hold, tensors=tensor_check(live.tensors, free),
            storage_key=storage_key, restore_input=restore_input, restore_history=restore_history,
            random_streams=random_streams, restore_streams=restore_streams,
            get_modes=get_modes, set_modes=set_modes,
            CaptureFailed=CaptureFailed, OtherResult=OtherResult, AGAIN=AGAIN,
            shapes_ok=lambda values: True, put_back=put_back,
        )  # fmt: skip
        self._namespace.update({f"graph{i}": self._stub(i) for i in range(len(self.segments))})
        exec(compile(text, f"<{self.title}>", "exec"), self._namespace)
        if not self.trace.draws:  # which are made before anything is checked
            self._tagged.prepare(w, guard, used_later, lambda lines: short_functions(lines, shapes, graph, replay))
        guards = Guards(self.trace, "\n".join(inline_single_uses(guard, used_later)), count)
        return guards, Replay(self.trace.plan, "\n".join(graph + replay))

    def _input_text(self, gather: list[str]) -> list[str]:
        inner = gather[0].removeprefix("return (").removesuffix(")")
        return [part.strip() for part in inner.rstrip(",").split(", ")] if inner.strip(", ") else []

    def _storages(self, w: GuardWriter) -> None:
        """Inputs changed in place must share memory with the same inputs as when recorded."""
        if not self.trace.writes.mutated:
            return
        mutated = {id(s) for s in self.trace.writes.mutated}
        others: dict[int, list[GuardedTensor]] = {}
        for tensor in self.trace.tensors:
            others.setdefault(tensor.memory, []).append(tensor)
        shared = [g for g in others.values() if len(g) > 1 and any(id(t.source) in mutated for t in g)]
        for group in shared:
            first = w.var(group[0].source)
            for tensor in group[1:]:
                w.fail_if(f"storage_key({w.var(tensor.source)}) != storage_key({first})", None)
            if self._backend != "eager":  # what overlaps is compiled in
                for tensor in group:
                    w.fail_if(f"{w.var(tensor.source)}.storage_offset() != {tensor.offset}", None)
        leaders = [g[0].source for g in others.values()]
        if len(leaders) > 1:
            names = ", ".join(w.var(s) for s in leaders)
            w.lines.append(f"if len(set(map(storage_key, ({names},)))) != {len(leaders)}: return MISS")
            w.checks += 1

    def _write_conditions(self, w: GuardWriter, input_names: dict[Any, str]) -> None:
        """What the program asked of its inputs' data, in the order it asked."""
        for i, decision in enumerate(self._conditions):
            asked = _decided_by(decision)
            inputs, self._namespace[f"condition{i}"] = evaluator(decision.condition or (), asked)
            w.lines.append(f"decided{i} = condition{i}({', '.join(input_names[n] for n in inputs)})")
            expr = w.scalar(decision.sym, lambda node, i=i, asked=asked: f"decided{i}[{asked.index(node)}]")  # type: ignore[misc]
            w.fail_if(f"decided{i} is None or not same({expr}, {w.const(decision.outcome)})", decision.site)

    def _undo(self, w: GuardWriter, input_names: dict[Any, str]) -> str:
        """Law: compute first. A graph that takes another decision, or raises, must leave nothing changed. Writes what is
        saved before it, as far as it can happen at all; gives the statements that put it back."""
        trace, writes = self.trace, self.trace.writes
        multi = len(self.segments) > 1 or bool(self._assertions)
        raises, raises_changed = undo_needed(trace.graph, writes.first)
        if self.is_dynamic:
            raises, raises_changed = True, writes.first is not None
        undo = ""
        if self._backend != "eager" and not (multi or raises_changed):
            self._written = {i.node for i in trace.inputs if i.shares_mutated}
        if multi or raises_changed:
            contents = ""
            for given in trace.inputs:
                name = input_names[given.node]
                if given.undo_error is not None:
                    raise given.undo_error
                if given.new_history:
                    w.lines.append(f"required_{name} = {name}.requires_grad")
                    undo += f"restore_history({name}, required_{name}); "
                if given.is_mutated:
                    w.lines.append(f"saved_{name} = {name}.detach().clone()")
                    contents += f"restore_input({name}, saved_{name}); "
                    if given.source.path in writes.with_history:
                        # what autograd takes note of can only be undone where it had noted nothing
                        w.fail_if(f"{name}.grad_fn is not None or {name}._is_view()", None)
                        contents += f"{name}.detach_(); "
            undo += contents
        if (multi or raises) and writes.drew_random:
            w.lines.append("random = random_streams()")
            undo += "restore_streams(random); "
        if (multi or raises) and any(switches_modes(n.target) for n in self.trace.graph.nodes):
            w.lines.append("modes = get_modes()")
            undo = "set_modes(modes); " + undo
        return undo

    # -- running -----------------------------------------------------------------------------------------------

    def _stub(self, index: int) -> Callable[..., Any]:
        """Stands for segment ``index`` until its first call: compiles it for the inputs at hand, then takes itself out."""

        def compile_and_call(inputs: list[Any]) -> Any:
            with _COMPILING:
                fn = self._namespace[f"graph{index}"]
                if fn is compile_and_call:
                    fn = self._namespace[f"graph{index}"] = self._compile_segment(index, tuple(inputs))
            nodes = self.segments[index].inputs
            written = [value for node, value in zip(nodes, inputs, strict=True) if node in self._written]
            return first_run(fn, inputs, written) if written else fn(inputs)

        return compile_and_call

    def _compile_segment(self, index: int, inputs: tuple[Any, ...]) -> Callable[..., Any]:
        """The callable of one segment: takes its inputs as one list (and may empty it). Raises CaptureFailed."""
        start = time.perf_counter()
        segment = self.segments[index]
        gm = segment.module()
        placeholders = [n for n in gm.graph.nodes if n.op == "placeholder"]
        dims: dict[int, set[int]] = {}
        for i, (node, value) in enumerate(zip(placeholders, inputs, strict=True)):
            if self.is_dynamic and is_a(value, torch.Tensor):
                inner = segment.inputs[i].op != "placeholder"
                varying = {d for d, n in enumerate(value.shape) if n > 1} if inner else self._dims(node, value)
                if varying:
                    dims[i] = varying
        if (reason := compiled_wrongly(self._backend, inputs, segment.outputs, self.trace)) is not None:
            raise CaptureFailed("MP902", reason)
        try:
            fakes = make_fake_inputs(inputs, dims or None).fakes
            for node, value, fake in zip(placeholders, inputs, fakes, strict=True):
                node.meta["example_value"] = fake
                if not is_a(value, torch.Tensor):
                    node.meta["magpy_scalar"] = type(value)
            compiled = get_backend(self._backend).compile(gm, fakes, dynamic=self.is_dynamic, same_random=self._same_random)
        except Unsupported as error:
            raise CaptureFailed(error.code, error.message) from error
        except Exception as error:  # whatever a compiler trips over, the program goes on in plain Python
            what = f"{type(error).__name__}: {str(error)[:160]}"
            raise CaptureFailed("MP902", f"The backend {self._backend} failed to compile the region ({what}).") from error
        if compiled.generated_code:
            self.generated_code.append(compiled.generated_code)
        if compiled.guards:
            position = {n: i for i, n in enumerate(self._inputs_in_order)}
            if not all(n in position for n in segment.inputs):
                raise CaptureFailed("MP902", "The backend specialised a later part of the region on sizes nothing guards.")
            self._checks[index] = (list(compiled.guards), [position[n] for n in segment.inputs])
            self._namespace["shapes_ok"] = shape_check(list(self._checks.values()))
        self.compile_seconds = (self.compile_seconds or 0.0) + time.perf_counter() - start
        fn = compiled.fn
        self._bare[index] = fn
        return compiled.boxed or (lambda inputs: fn(*inputs))

    @property
    def is_compiled(self) -> bool:
        return self.compile_seconds is not None

    @property
    def bare_callable(self) -> Callable[..., Any]:
        """The backend's callable of a complete capture, without guards and replay. It must have run once."""
        return self._bare[0]

    @property
    def is_ready(self) -> bool:
        """Whether every segment has been compiled."""
        return all(i in self._bare for i, s in enumerate(self.segments) if s.outputs or s.has_work)

    @property
    def names(self) -> dict[str, Any]:
        """What the generated functions refer to, without these functions."""
        return {k: v for k, v in self._namespace.items() if k not in ("run", "gather", "matches")}

    @property
    def title(self) -> str:
        return f"magpy capture of {self.trace.region_id}"

    def globals_hold(self) -> bool:
        return bool(self.trace.globals_hold())

    def __repr__(self) -> str:
        nodes = sum(1 for n in self.trace.graph.nodes if n.op.startswith("call"))
        parts = f"{nodes} operations, {len(self.segments)} graph(s)"
        return f"<Capture: {parts}, {len(self.guards)} guards, {len(self.replay.effects)} effects>"


def _decided_by(decision: Decision) -> list[torch.fx.Node]:
    """The graph values that a decision depends on."""
    return [leaf.payload for leaf in decision.sym.leaves() if leaf.kind == "node"]
