"""A function's ATen operations as a graph. Key function: trace_operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.fx
from torch.fx.experimental.proxy_tensor import make_fx


def trace_operators(fn: Callable[..., Any], fakes: Sequence[Any], fake_mode: Any) -> torch.fx.GraphModule:
    """The operations that ``fn(*fakes)`` runs, those of autograd among them: in the graph, nothing is left of autograd.

    Nodes have no example values, by which compilers would transform the graph early."""
    with fake_mode:
        traced: torch.fx.GraphModule = make_fx(fn)(*fakes)
    for node in traced.graph.nodes:
        node.meta.clear()
    return traced
