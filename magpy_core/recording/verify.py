"""The verifier of traces: is a trace consistent, and free of the program's objects?

Off by default, on in tests (``MAGPY_VERIFY=1``). Key function: ``verify_trace``; key type: TraceError.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any

import torch.fx

from magpy_core._compat.torch.fake import is_fake
from magpy_core.recording.trace import Trace
from magpy_core.refgraph import kinds
from magpy_core.refgraph.guard_kind import Read
from magpy_core.refgraph.kinds import is_a
from magpy_core.refgraph.node import Node
from magpy_core.refgraph.source import Source
from magpy_core.refgraph.verify import starts_at_root
from magpy_core.replay.ir import Effect

_PLAIN = (tuple, list, dict, set, frozenset, types.MappingProxyType)
_RUNNING = (types.FrameType, types.TracebackType, types.GeneratorType, BaseException)


class TraceError(AssertionError):
    """A trace that is inconsistent, or keeps an object of the program; ``problems`` are sentences."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("the trace is wrong:\n" + "\n".join(f"  {p}" for p in problems))
        self.problems = problems


def verify_trace(trace: Trace) -> None:
    """Raise TraceError unless ``trace`` is consistent and holds no tensor and no object of the program."""
    problems = [*_broken_links(trace), *_kept(trace)]
    if problems:
        raise TraceError(problems)


def _broken_links(trace: Trace) -> Iterator[str]:
    nodes = set(trace.graph.nodes)
    given = [i.node for i in trace.inputs] + [node for node, _ in trace.numbers]
    placeholders = [node for node in trace.graph.nodes if node.op == "placeholder"]
    if set(given) != set(placeholders) or len(given) != len(placeholders):
        yield "the inputs are not the placeholders of the graph"
    sources = [i.source for i in trace.inputs] + [t.source for t in trace.tensors] + list(trace.draws) + trace.fresh.clocks
    sources += [source for group in trace.distinct for source in group] + list(trace.writes.mutated)
    syms = [sym for _, sym in trace.numbers] + [decision.sym for decision in trace.decisions]
    for leaf in (leaf for sym in syms for leaf in sym.leaves()):
        if leaf.kind == "source":
            sources.append(leaf.payload)
        elif leaf.is_of_graph and leaf.payload not in nodes:
            yield f"`{leaf.describe()}` is a value that the graph does not compute"
    yield from (f"`{source.describe()}` does not start at a root" for source in sources if not starts_at_root(source))
    for decision in trace.decisions:
        if decision.last_node is not None and decision.last_node not in nodes:
            yield f"the decision on `{decision.sym.describe()}` follows a node of another graph"
    yield from (
        f"the plan uses `{node.name}`, which is not in the graph" for node in trace.plan.outputs if node not in nodes
    )


def _kept(trace: Trace) -> Iterator[str]:
    """The program's objects that are reachable from the trace, with their paths."""
    seen: set[int] = set()
    stack: list[tuple[str, Any]] = [("trace", trace)]
    while stack:
        path, value = stack.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if is_a(value, torch.Tensor) and not is_fake(value):
            yield f"{path} is a tensor"
        elif is_a(value, _RUNNING) and not type(value).__module__.startswith("magpy_core"):
            yield f"{path} is a {type(value).__name__}"
        else:
            stack += [(f"{path}{step}", part) for step, part in _parts(value)]


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """The parts of a trace's objects, without objects that a guard compares with: definitions, roots of paths, and objects
    that don't support weak references."""
    tp = type(value)
    if tp is Source:
        if value.base is not None:
            yield ".base", value.base
            yield ".key", value.key
    elif tp is Read:
        weak = kinds.kind_of(value.expected) not in (kinds.SCALAR, kinds.IDENTITY) and type(value.expected).__weakrefoffset__
        yield from [(".source", value.source)] + ([(".expected", value.expected)] if weak else [])
    elif tp is Node:
        if value.kind != kinds.IDENTITY:
            yield ".obj", value.obj
        yield from ((f".{name}", getattr(value, name)) for name in ("source", "snapshot", "written_at", "forced"))
    elif tp is Effect and value.op == "warn":  # a warning's key includes the globals of the module that raises it
        yield from ((".target", value.target), (".value", value.value), (".sites", value.sites))
    elif tp is torch.fx.Graph:
        yield from ((f".{node.name}", node) for node in value.nodes)
    elif tp is torch.fx.Node:
        yield from ((f".{name}", getattr(value, name)) for name in ("args", "kwargs", "meta"))
    elif is_a(value, (dict, types.MappingProxyType)) and tp in _PLAIN:
        for key, part in value.items():
            yield ".key", key
            yield f"[{kinds.bounded_repr(key)}]", part
    elif tp in _PLAIN:
        yield from ((f"[{i}]", part) for i, part in enumerate(value))
    elif str(tp.__module__).startswith("magpy_core") and not is_a(value, type):
        names = [name for k in tp.__mro__ for name in k.__dict__.get("__slots__", ())]
        yield from ((f".{name}", getattr(value, name)) for name in names if hasattr(value, name))
        yield from ((f".{name}", part) for name, part in getattr(value, "__dict__", {}).items())
