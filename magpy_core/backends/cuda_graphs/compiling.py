"""Compiles a graph without autograd so that its part on a device can be replayed as a CUDA graph. Key function:
compile_replayed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import torch.fx

from magpy_core._compat.torch.inductor import Compiled
from magpy_core._compat.torch.operator_schemas import is_mutable
from magpy_core.backends.calling import Boxed
from magpy_core.backends.cuda_graphs.numbers import vectorized
from magpy_core.backends.cuda_graphs.parts import NotSeparable, Part, joined, separate
from magpy_core.backends.cuda_graphs.replayed import Replayed

CompileGraph = Callable[[torch.fx.GraphModule, Sequence[Any]], Compiled]


def compile_replayed(
    gm: torch.fx.GraphModule, fakes: Sequence[Any], mode: Any, written: Collection[int], compile_graph: CompileGraph
) -> tuple[Compiled, Replayed | None]:
    """``gm`` compiled by ``compile_graph``, as one if it can't be replayed, and what replays it; None without a device.
    ``written``: inputs that are written, also if schemas don't say so."""
    try:
        parts = separate(gm, fakes, mode, written)
    except NotSeparable as error:
        compiled = compile_graph(gm, fakes)
        return compiled, Replayed(_boxed(compiled), frozenset(), 0, str(error))
    if parts is None:
        return compile_graph(gm, fakes), None
    sources = list[str]()

    def compiled_part(part: Part | None) -> Boxed | None:
        if part is None:
            return None
        found = compile_graph(part.graph, part.fakes)
        sources.extend(found[2])
        return _boxed(found)

    device = compiled_part(parts.device)
    assert device is not None, "a graph on a device has a part there"
    few = None if parts.numbers is None else vectorized(parts.numbers.graph, parts.numbers.fakes, mode)
    numbers: Boxed | None
    counts: Boxed | None
    if few is not None:  # no C++ compiler is needed for them
        numbers, counts = _run(few), None if parts.counts is None else _run(_used(parts.counts.graph))
    else:
        numbers, counts = compiled_part(parts.numbers), compiled_part(parts.counts)
    replayed = Replayed(device, parts.written, parts.place.index or 0)
    whole = joined(parts, numbers, replayed, counts)
    return ((lambda *inputs: whole(list(inputs))), whole, sources), replayed


def _boxed(compiled: Compiled) -> Boxed:
    fn, boxed, _ = compiled
    return boxed or (lambda inputs: fn(*inputs))


def _run(gm: torch.fx.GraphModule) -> Boxed:
    forward = gm.forward
    return lambda inputs: forward(*inputs)


def _used(gm: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """``gm`` without what neither its results nor its writes need."""
    gm.graph.eliminate_dead_code(lambda node: node.op in ("placeholder", "output") or is_mutable(node))
    gm.recompile()
    return gm
