"""Generates the statements of a capture's functions from a trace, and the names they use. Key type: CodeWriter.

The functions begin with the guard; then the state needed for undo is saved, the graph's segments run, and replay follows.
"""

from __future__ import annotations

from typing import Any

import torch.fx

from magpy_core._compat.torch.data_parallel import collectives_run
from magpy_core._compat.torch.tensor_guards import storage_address, storage_key
from magpy_core._compat.torch.torch_state import SET_GRAD, get_modes, random_streams, restore_streams, set_modes
from magpy_core.capture.conditions import evaluator
from magpy_core.capture.outcome import MISS, CaptureFailed, NotReady, NotRun
from magpy_core.capture.settings import Settings
from magpy_core.capture.structure import Structure, decided_by
from magpy_core.capture.text import Lines
from magpy_core.capture.undo import restore_history, restore_input, restore_numbers, write_undo
from magpy_core.guards.codegen import GuardWriter
from magpy_core.guards.first_level import FirstLevel
from magpy_core.guards.kinds import TENSOR
from magpy_core.opgraph.calls import OtherResult
from magpy_core.opgraph.replicas import groups_in
from magpy_core.recording.ledger import Decision
from magpy_core.recording.trace import GuardedTensor, Trace
from magpy_core.refgraph.draws import rewind_streams
from magpy_core.replay.codegen import ReplayWriter


class CodeWriter:
    """Writes one capture's statements. Afterwards ``lines`` holds them, ``names`` what they refer to (except the graphs and
    the check of tensors), and ``undo`` the statements that undo a run. With ``level``, the guard omits what that covers."""

    def __init__(self, trace: Trace, structure: Structure, settings: Settings, level: FirstLevel | None = None) -> None:
        self._trace, self._structure, self._settings, self._level = trace, structure, settings, level
        self.w = GuardWriter(_note, level)
        self.names: dict[str, Any] = {}
        self._uncounted: int | None = None
        values = self._guard()
        inputs = [values[n] for n in structure.placeholders]
        graph, replay = self._graph_and_replay(values)
        guard = self.w.lines
        self.checks = self.w.checks
        # only compiling reveals on which sizes the backend or a dynamic graph specializes
        shapes = [f"if not shapes_ok(({''.join(f'{i}, ' for i in inputs)})): return MISS"] if self.may_specialize else []
        self.lines = Lines(guard, inputs, shapes, graph, replay, bool(trace.draws), self._uncounted)
        self.names |= self.w.table
        self.names.update(
            MISS=MISS, global_state=trace.globals_hold, storage_key=storage_key, restore_input=restore_input,
            storage_address=storage_address,
            restore_numbers=restore_numbers, stack=torch.stack,
            restore_history=restore_history, random_streams=random_streams, restore_streams=restore_streams,
            get_modes=get_modes, set_modes=set_modes, set_grad_enabled=SET_GRAD, rewind_streams=rewind_streams,
            CaptureFailed=CaptureFailed, OtherResult=OtherResult, NotReady=NotReady, NotRun=NotRun,
            collectives_run=collectives_run,
        )  # fmt: skip

    @property
    def may_specialize(self) -> bool:
        """Whether a backend may add checks of shapes and numbers to the guard."""
        return bool(self._trace.dims) or (self._settings.backend != "eager" and bool(self._trace.numbers))

    # -- guard -------------------------------------------------------------------------------------------------

    def _guard(self) -> dict[torch.fx.Node, str]:
        """Write the guard's statements; returns the variables of the graph's inputs."""
        trace, w, level = self._trace, self.w, self._level
        w.lines += [self._call_shape(), "if not global_state(): return MISS"]
        if level is not None:
            w.lines.append("if not unchanged(): return CHANGED")
        for source in trace.draws:  # draw all of them, in order, even if some are not used
            w.var(source)
        for source in trace.fresh.clocks:
            w.var(source)
        w.write(trace.refgraph.reads)
        self._distinct(counted=False)
        if trace.counts:
            own = [w.var(tensor.source) for tensor in trace.tensors if not tensor.source.counted]
            w.lines.append(f"if not other_tensors({', '.join(own)}): return MISS")
            self._uncounted = len(w.lines)
            w.write_counted(trace.refgraph.reads)
            self._distinct(counted=True)
        self._tensors()
        self._storages()
        return {n: w.scalar(sym) for n, sym in trace.numbers} | {i.node: w.var(i.source) for i in trace.inputs}

    def _distinct(self, *, counted: bool) -> None:
        level = self._level
        for group in self._trace.distinct:
            if any(source.counted for source in group) is counted:
                if level is None or not all(map(level.is_stable, group)):
                    self.w.distinct(list(group))

    def _call_shape(self) -> str:
        wanted = self._settings.kwarg_names
        if wanted:
            return f"if len(args) != {self._settings.n_args} or tuple(kwargs) != {self.w.const(wanted)}: return MISS"
        return f"if kwargs or len(args) != {self._settings.n_args}: return MISS"

    def _tensors(self) -> None:
        trace, w = self._trace, self.w
        names = [w.var(tensor.source) for tensor in trace.tensors]
        guarded = {id(tensor.source) for tensor in trace.tensors}
        for read in trace.refgraph.reads:  # tensors that no operation took: the program may depend on their presence
            if read.kind is TENSOR and id(read.source) not in guarded:
                w.fail_if(f"type({w.var(read.source)}) is not {w.const(read.expected)}", read.site)
        if names:
            w.lines.append(f"if not tensors({', '.join(names)}): return MISS")
            w.checks += len(names)
        for tensor in trace.tensors:
            if tensor.dims:
                v = w.var(tensor.source)
                small = " or ".join(f"{v}.size({d}) < 2" for d in sorted(tensor.dims))
                w.fail_if(f"{small} or not {v}.is_contiguous()", None)

    def _storages(self) -> None:
        """Inputs that are changed in place must share memory with the same inputs as in the recorded call."""
        w, mutated = self.w, {id(s) for s in self._trace.writes.mutated}
        if self._trace.fresh.arrays:
            every = bool(self._trace.fresh.array_writes)
            others = [w.var(t.source) for t in self._trace.tensors if every or id(t.source) in mutated]
            arrays = "".join(f"{w.var(source)}, " for source in self._trace.fresh.arrays)
            w.fail_if(f"not are_separate(({arrays}), map(storage_address, ({''.join(f'{o}, ' for o in others)})))", None)
        if not mutated:
            return
        by_memory: dict[int, list[GuardedTensor]] = {}
        for tensor in self._trace.tensors:
            by_memory.setdefault(tensor.memory, []).append(tensor)
        for group in by_memory.values():
            if len(group) == 1 or not any(id(t.source) in mutated for t in group):
                continue
            first = w.var(group[0].source)
            for tensor in group[1:]:
                w.fail_if(f"storage_key({w.var(tensor.source)}) != storage_key({first})", None)
            if self._settings.backend != "eager":  # compiled code depends on which elements overlap
                for tensor in group:
                    w.fail_if(f"{w.var(tensor.source)}.storage_offset() != {tensor.offset}", None)
        if len(by_memory) > 1:
            names = ", ".join(w.var(group[0].source) for group in by_memory.values())
            w.lines.append(f"if len(set(map(storage_key, ({names},)))) != {len(by_memory)}: return MISS")
            w.checks += 1

    def _write_conditions(self, values: dict[torch.fx.Node, str]) -> None:
        """Decisions on the data of inputs, in the program's order."""
        for i, decision in enumerate(self._structure.conditions):
            decisive = decided_by(decision)
            inputs, self.names[f"condition{i}"] = evaluator(decision.condition or (), decisive)
            self.w.lines.append(f"decided{i} = condition{i}({', '.join(values[n] for n in inputs)})")
            differs = self._differs(decision, {node: f"decided{i}[{decisive.index(node)}]" for node in decisive})
            self.w.fail_if(f"decided{i} is None or {differs}", decision.site)

    def _differs(self, decision: Decision, values: dict[torch.fx.Node, str]) -> str:
        return f"not same({self.w.scalar(decision.sym, values)}, {self.w.const(decision.outcome)})"

    # -- graph and replay --------------------------------------------------------------------------------------

    def _graph_and_replay(self, inputs: dict[torch.fx.Node, str]) -> tuple[list[str], list[str]]:
        """The guard fetches what they need from outside, before effects change any access path."""
        w, structure, plan = self.w, self._structure, self._trace.plan
        values = dict(inputs)
        guard, w.lines = w.lines, []
        compiled = self._settings.backend != "eager"
        self.undo = write_undo(
            w, self._trace, inputs, may_undo=structure.may_undo, holds_writes=structure.holds_writes, compiled=compiled
        )
        before, w.lines = w.lines, guard
        undo, graph = self.undo.statements, self._segments(values)
        if plan.raises and not (structure.cuts or structure.assertions):
            # the call always raises: the graph need not run
            before, undo, graph = [], "", []
        writer = ReplayWriter(w, values)
        result, replay = writer.values(plan)
        self._write_conditions(inputs)
        # nothing outside has changed yet: after any failure, eager mode can run the call from its beginning
        failed = ["except CaptureFailed:", f"    {undo}raise", "except OtherResult:", f"    {undo}return MISS"]
        # what communicates is in the last segment, so none has when a segment is not ready
        failed += ["except NotReady:", f"    {undo}return NotRun.NOT_READY", "except Exception:"]
        if groups := groups_in(self._trace.graph):  # a second run would communicate twice, and wait for the other processes
            groups_name = w.const(groups)
            before.append(f"collectives = collectives_run({groups_name})")
            failed.append(f"    if collectives_run({groups_name}) != collectives: {undo}raise")
        failed.append(f"    {undo}return NotRun.RAISED")
        failed += ["except BaseException:", f"    {undo}raise"] if undo else []
        check = self._check_replaced(writer) if self.undo.is_complete else []
        graph = [*before, "try:", *(f"    {line}" for line in [*graph, *writer.lines, *check] or ["pass"]), *failed]
        # eager mode raises, so that the traceback shows the program's frames
        return graph, [*replay, f"{undo}return NotRun.RAISES" if plan.raises else f"return {result}"]

    def _check_replaced(self, writer: ReplayWriter) -> list[str]:
        """Check that what the effects replace is still there: the last statement before the effects, which make no call, so
        that no other thread runs in between."""
        replaced = writer.conflict_conditions(self._trace.plan)
        return [f"if {' or '.join(replaced)}: {self.undo.statements}return NotRun.CONFLICT"] if replaced else []

    def _segments(self, values: dict[torch.fx.Node, str]) -> list[str]:
        """The calls of the compiled segments, whose results are added to ``values``, and the checks of decisions on them."""
        structure, lines = self._structure, []
        last = len(structure.segments) - 1
        for i, segment in enumerate(structure.segments):
            given = ", ".join(values[n] for n in segment.inputs)
            call = f"graph{i}([{given}])"
            if self.may_specialize and not set(segment.inputs) <= set(structure.placeholders):
                lines.append(f"if not shapes_ok{i}([{given}]): {self.undo.statements}return MISS")
            if segment.outputs:
                lines.append(f"out{i} = {call}")
                for k, node in enumerate(segment.outputs):
                    values[node] = f"g{i}_{k}"
                    lines.append(f"g{i}_{k} = out{i}[{k}]")
            elif segment.nodes:
                lines.append(call)
            lines += self._clocks(values, i)
            if segment.grad_mode is not None:  # compiled code may return with another one
                lines.append(f"set_grad_enabled({segment.grad_mode})")
            for decision in structure.assertions if i == last else structure.cuts[i : i + 1]:
                note = _note(decision.site)
                other = f"{self.undo.statements}{'other_path(); ' if structure.holds_writes else ''}return MISS"
                lines.append(f"if {self._differs(decision, values)}: {other}  # {note}")
        return lines

    def _clocks(self, values: dict[Any, str], i: int) -> list[str]:
        """Read the clocks that the program reads after the operations of segment ``i``."""
        segments = self._structure.segments
        lines: list[str] = []
        for read in self._trace.fresh.late_clocks:
            home = next((k for k, segment in enumerate(segments) if read.after in segment.nodes), len(segments) - 1)
            if home == i:
                values[read] = f"clock{len(lines)}_{i}"
                lines.append(f"{values[read]} = {self.w.const(read.clock)}()")
        return lines


def _note(site: Any) -> str:
    if site is None:
        return ""
    return f"{site.code.co_filename.rsplit('/', 1)[-1]}:{site.lineno}"
