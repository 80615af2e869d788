"""The verifier of reference graphs: does a recording's graph describe the state the region was entered with?

At the end of a recording every guard on what the region did not write must hold. Off by default, on in tests
(``MAGPY_VERIFY=1``). Key function: ``verify``; key type: RefGraphError.
"""

from __future__ import annotations

import functools
import os
import types
from collections.abc import Callable
from typing import Any

from magpy_core._compat.torch.tensor_guards import no_torch_function
from magpy_core.refgraph import kinds
from magpy_core.refgraph.fields import instance_dict
from magpy_core.refgraph.graph import RefGraph
from magpy_core.refgraph.guard_kind import Read
from magpy_core.refgraph.kinds import is_a
from magpy_core.refgraph.node import Node
from magpy_core.refgraph.source import Root, Source

_BY_VALUE = (kinds.SCALAR, kinds.IDENTITY)


class RefGraphError(AssertionError):
    """A reference graph that contradicts the state it was recorded from; ``problems`` are sentences."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("the reference graph is wrong:\n" + "\n".join(f"  {p}" for p in problems))
        self.problems = problems


class _Unknown(Exception):
    """The region has written something on the path, or evaluating it would run user code."""


def _now(graph: RefGraph, args: tuple[Any, ...], kwargs: dict[str, Any], source: Source) -> Any:
    """The value at a source, if the region has written nothing on the path."""
    if source.base is None:
        value = source.evaluate(args, kwargs)
    else:
        base = _now(graph, args, kwargs, source.base)
        key = _now(graph, args, kwargs, source.key) if isinstance(source.key, Source) else source.key
        if not source.step_kind.may_follow(base, key) or (id(base), key) in graph.class_writes or id(base) in graph.advanced:
            raise _Unknown
        value = source.step_kind.read(base, key)
    for state in (value, value.__dict__ if is_a(value, types.FunctionType) else instance_dict(value)):
        node = graph.node(state)
        if node is not None and node.snapshot is not None:
            raise _Unknown
    return value


def enabled() -> bool:
    """Whether recordings verify their graph (environment variable ``MAGPY_VERIFY``)."""
    return os.environ.get("MAGPY_VERIFY", "") not in ("", "0")


def verify(
    graph: RefGraph,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    is_internal: Callable[[Any], bool | None] = lambda obj: None,
) -> None:
    """Raise RefGraphError unless ``graph`` holds for a region entered with ``args`` and ``kwargs``.

    ``is_internal(obj)``: whether the region created an object; an internal object must have no node.
    """
    now = functools.partial(_now, graph, args, kwargs)
    problems: list[str] = []
    with no_torch_function():
        for key, node in graph.nodes.items():
            if node.source.kind == "computed":
                continue
            problems += _node_problems(key, node, now, is_internal if key not in graph.private else lambda obj: False)
        for read in graph.reads:
            if read.source.kind == "computed":
                continue
            problems += _read_problems(read, now)
    if problems:
        raise RefGraphError(problems)


def _node_problems(
    key: int, node: Node, now: Callable[[Source], Any], is_internal: Callable[[Any], bool | None]
) -> list[str]:
    out: list[str] = []
    name = node.source.describe()
    if id(node.obj) != key:
        out.append(f"`{name}` is filed under another object's identity")
    if node.kind != kinds.kind_of(node.obj):
        out.append(f"`{name}` is recorded as a {kinds.NAMES[node.kind]} but is a {kinds.NAMES[kinds.kind_of(node.obj)]}")
    if not starts_at_root(node.source):
        out.append(f"`{name}` does not start at a root")
    else:
        try:
            if now(node.source) is not node.obj:
                out.append(f"`{name}` leads to another object than its node's")
        except (_Unknown, LookupError, AttributeError, ValueError):
            pass
    # A native field's object may be created inside: the Python object of a gradient is created when it is first read.
    # An empty dict is not tracked by the collector until it holds a container, so a dict's age is unknown.
    if (
        node.kind not in (*_BY_VALUE, kinds.DICT)
        and node.source.kind not in ("const", "field", "slot")
        and is_internal(node.obj)
    ):
        out.append(f"`{name}` has a node for an object that the region created itself")
    if (node.written_at or node.forced) and node.snapshot is None:
        out.append(f"`{name}` was written and has no snapshot")
    if node.snapshot is not None and node.snapshot.obj is not node.obj:
        out.append(f"the snapshot of `{name}` is of another object")
    return out


def _read_problems(read: Read, now: Callable[[Source], Any]) -> list[str]:
    name = read.source.describe()
    if not all(starts_at_root(s) for s in (read.source, read.expected) if isinstance(s, Source)):
        return [f"the read of `{name}` does not start at a root"]
    try:
        failure = read.kind.failure(read, now)
    except _Unknown:
        return []
    except (LookupError, AttributeError, ValueError):
        return [f"`{name}` was read, but did not exist at entry"]
    return [f"the guard {read.kind.name!r} on `{name}` does not hold for the recorded entry state"] if failure else []


def starts_at_root(source: Source) -> bool:
    return isinstance(source.chain()[0].step_kind, Root)
