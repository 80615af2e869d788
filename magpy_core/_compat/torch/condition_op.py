"""An operator that tests numbers in tensors with Python code, for graphs that a compiler arranges.

A compiled graph names the test by its text, which is the same in every process. Key function: holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.fx

_TESTS: dict[str, Callable[..., bool]] = {}


def _run(values: Sequence[torch.Tensor], test: str) -> torch.Tensor:
    return torch.tensor(_TESTS[test](*values), device="cpu")


_LIBRARY = torch.library.Library("magpy", "FRAGMENT")
_LIBRARY.define("holds(Tensor[] values, str test) -> Tensor")
_LIBRARY.impl("holds", _run, "CompositeExplicitAutograd")
torch.library.register_fake(
    "magpy::holds", lambda values, test: values[0].new_empty((), dtype=torch.bool, device="cpu"), lib=_LIBRARY
)
_HOLDS = torch.ops.magpy.holds.default


def holds(graph: torch.fx.Graph, values: Sequence[torch.fx.Node], test: Callable[..., bool], text: str) -> torch.fx.Node:
    """Add a node to ``graph``: ``test(*values)`` as a tensor on the CPU. The same text stands for the same test."""
    _TESTS[text] = test
    return graph.call_function(_HOLDS, (list(values), text))


def is_test(node: Any) -> bool:
    """Whether a node was made by :func:`holds`."""
    return isinstance(node, torch.fx.Node) and node.target is _HOLDS
