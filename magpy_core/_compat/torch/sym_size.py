"""The sympy expression behind a symbolic size (private in torch.SymInt), and what was assumed about sizes meanwhile.
Key functions: ``sym_expression``, ``assumptions``, ``hint_of``."""

from __future__ import annotations

from typing import Any

import torch


def sym_expression(size: Any) -> Any:
    """The sympy expression of a SymInt, None for a plain int."""
    if isinstance(size, torch.SymInt):
        return size.node.expr
    return None


def assumptions(shape_env: Any, start: int) -> list[Any]:
    """The sympy relations that a shape environment has taken for true, from the one with index ``start`` on: which way
    torch's own shape functions went where that depends on sizes."""
    return [guard.expr for guard in shape_env.guards[start:]]


def hint_of(size: Any) -> int | None:
    """The number a size stood for when it was computed; None where only data says."""
    if isinstance(size, torch.SymInt):
        return size.node.hint if size.node.has_hint() else None
    return int(size)
