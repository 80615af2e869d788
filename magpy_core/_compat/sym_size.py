"""The sympy expression behind a symbolic size (private in torch.SymInt). Key function: ``sym_expression``."""

from __future__ import annotations

from typing import Any

import torch


def sym_expression(size: Any) -> Any:
    """The sympy expression of a SymInt, None for a plain int."""
    if isinstance(size, torch.SymInt):
        return size.node.expr
    return None
