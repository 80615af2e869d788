"""Law: compute first. A graph that takes another path, or raises, leaves nothing changed.

Generates the statements that save state before the graph runs and those that restore it.
Key type: Undo; key functions: write_undo, restore_input, restore_numbers, restore_history.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
import torch.fx

from magpy_core._compat.torch.tensor_guards import keep_version
from magpy_core._compat.torch.torch_state import switches_modes
from magpy_core.guards.codegen import GuardWriter
from magpy_core.opgraph.raising import at_risk_in_order, at_risk_when_compiled, nodes_before_raise
from magpy_core.opgraph.replicas import communicates
from magpy_core.recording.trace import GraphInput, Trace


@dataclass(frozen=True)
class Undo:
    """``statements`` restore everything (each ends in ``"; "``). ``kept``: inputs that are saved only for the first run of
    the compiled graph. ``is_complete``: a call can be undone after its graph has run."""

    statements: str = ""
    is_complete: bool = True
    kept: frozenset[torch.fx.Node] = frozenset()


def write_undo(
    w: GuardWriter, trace: Trace, names: Mapping[torch.fx.Node, str], *, may_undo: bool, holds_writes: bool, compiled: bool
) -> Undo:
    """Writes the statements that save state before the graph, if a run may have to be undone. ``may_undo``: part of the
    graph may run although the capture doesn't fit; ``holds_writes``: it writes nothing then; ``compiled``: the backend is a
    compiler."""
    writes = trace.writes
    written = [i for i in trace.inputs if i.writes]
    everything = (may_undo and not holds_writes) or bool(trace.dims)
    raises = may_undo or everything or bool(nodes_before_raise(trace.graph))
    if everything:
        at_risk = frozenset(i.node for i in written)
    else:
        find = at_risk_when_compiled if compiled else at_risk_in_order
        at_risk = find(trace.graph, {i.node: i.writes for i in written})
    kept = frozenset(i.node for i in trace.inputs if i.shares_mutated and compiled and i.node not in at_risk)
    statements = _save_inputs(w, trace, names, at_risk) if may_undo or at_risk else ""
    if raises and writes.drew_random:
        w.lines.append("random = random_streams()")
        statements += "restore_streams(random); "
    if any(switches_modes(n.target) for n in trace.graph.nodes):
        w.lines.append("modes = get_modes()")
        statements = "set_modes(modes); " + statements
    is_complete = (may_undo and not holds_writes) or all(i.node in at_risk for i in written)
    is_complete = is_complete and not any(map(communicates, trace.graph.nodes))
    return Undo(statements, is_complete, kept)


def _save_inputs(w: GuardWriter, trace: Trace, names: Mapping[torch.fx.Node, str], at_risk: frozenset[torch.fx.Node]) -> str:
    """Keeps the contents of the inputs ``at_risk`` and the autograd history of all; returns what restores them. Contents
    would cost a copy of every parameter and optimizer state in each training step."""
    history = contents = ""
    numbers: dict[torch.dtype, list[str]] = {}
    for graph_input in trace.inputs:
        name = names[graph_input.node]
        if graph_input.undo_error is not None:
            raise graph_input.undo_error
        if graph_input.new_history:
            w.lines.append(f"required_{name} = {name}.requires_grad")
            history += f"restore_history({name}, required_{name}); "
        if graph_input.node in at_risk and _is_number(graph_input, trace):
            numbers.setdefault(graph_input.facts.dtype, []).append(name)
        elif graph_input.node in at_risk:
            w.lines.append(f"saved_{name} = {name}.detach().clone()")
            contents += f"restore_input({name}, saved_{name}); "
            if graph_input.source.path in trace.writes.with_history:
                # a write that autograd records can be undone only if the tensor had no history before
                w.fail_if(f"{name}.grad_fn is not None or {name}._is_view()", None)
                contents += f"{name}.detach_(); "
    for i, group in enumerate(numbers.values()):
        together = f"({', '.join(group)},)"
        w.lines.append(f"numbers{i} = stack({together})")
        contents += f"restore_numbers({together}, numbers{i}); "
    return history + contents


def _is_number(graph_input: GraphInput, trace: Trace) -> bool:
    """Whether it is a single number on the CPU without autograd, an optimizer's step count. There is one for each parameter:
    they are copied together."""
    facts = graph_input.facts
    is_alone = facts.type is torch.Tensor and not facts.shape and facts.device.type == "cpu"
    return is_alone and not facts.requires_grad and graph_input.source.path not in trace.writes.with_history


def restore_numbers(tensors: Sequence[torch.Tensor], backup: torch.Tensor) -> None:
    """Restore the contents of 0-d tensors, without incrementing their versions."""
    for tensor, number in zip(tensors, backup, strict=True):
        restore_input(tensor, number)


def restore_input(tensor: torch.Tensor, backup: torch.Tensor) -> None:
    """Restore the contents of ``tensor`` from ``backup`` without incrementing its version."""
    with torch.no_grad(), keep_version(tensor):
        if tensor.shape != backup.shape:  # an operation with ``out=`` resized it
            tensor.resize_(backup.shape)
        for dim in range(tensor.dim()):
            if tensor.stride(dim) == 0 and tensor.shape[dim] > 1:  # expanded: its rows share memory
                tensor, backup = tensor.narrow(dim, 0, 1), backup.narrow(dim, 0, 1)
        try:
            tensor.copy_(backup)
        except RuntimeError:  # overlapping windows: copy element by element
            for place in itertools.product(*map(range, tensor.shape)):
                tensor[place].copy_(backup[place])


def restore_history(tensor: torch.Tensor, required: bool) -> None:
    """Make the tensor a leaf again, with its former ``requires_grad``."""
    if tensor.grad_fn is not None:
        tensor.detach_()
    tensor.requires_grad_(required)
