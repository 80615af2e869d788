"""What a recorded operation gave, for whoever shows the graph later. Key function: note_tensor."""

from __future__ import annotations

from typing import Any

import torch

_PLAIN = (torch.Tensor, torch.nn.Parameter)


def note_tensor(node: torch.fx.Node, result: Any) -> None:
    """Keep dtype and shape of a plain tensor; a subclass's properties may be the program's own code."""
    if type(result) in _PLAIN:
        node.meta["magpy_tensor"] = (result.dtype, tuple(result.shape))
