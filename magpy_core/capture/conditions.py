"""Runs the conditions of a capture before its graph. Key function: evaluator."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
import torch.fx

from magpy_core.opgraph.segments import Segment


def evaluator(
    nodes: tuple[torch.fx.Node, ...], wanted: list[torch.fx.Node]
) -> tuple[list[torch.fx.Node], Callable[..., Any]]:
    """The graph inputs that a condition takes, and a function that computes the ``wanted`` values from them; it returns None
    if that raises (the program would raise too, or take another path earlier), and the call runs in eager mode."""
    segment = Segment(list(nodes), outputs=wanted)
    own = set(nodes)
    segment.inputs = list(dict.fromkeys(n for node in nodes for n in node.all_input_nodes if n not in own))
    module = functools.cache(segment.module)

    def evaluate(*inputs: Any) -> Any:
        compute = module().forward
        try:
            if not torch.is_grad_enabled():
                return compute(*inputs)
            with torch.no_grad():
                return compute(*inputs)
        except Exception:
            return None

    return segment.inputs, evaluate
