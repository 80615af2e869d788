"""Which operators a piece of code runs. Key type: OperatorCalls."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from magpy_core._compat.torch.torch_state import PlainDispatchMode


class OperatorCalls(PlainDispatchMode):
    """While entered, notes each operator that runs, with the tensors that it gets and returns, in ``calls``."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.calls: list[tuple[Any, list[torch.Tensor]]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        leaves = tree_leaves((args, kwargs, result))
        self.calls.append((func, [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]))
        return result
