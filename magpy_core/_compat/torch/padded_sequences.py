"""`torch.nn.utils.rnn.pad_sequence` for all lengths: torch's own function makes plain numbers of them, which a compiler then
specializes on. Key functions: `pad_sequence`, `is_padding`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import torch
import torch.fx

_LIBRARY = torch.library.Library("magpy", "FRAGMENT")
_LIBRARY.define("pad_sequence(Tensor[] rows, bool batch_first, float value, str side) -> Tensor")


def _padded(rows: Sequence[torch.Tensor], batch_first: bool, value: float, side: str) -> torch.Tensor:
    longest = functools.reduce(torch.sym_max, [row.shape[0] for row in rows])
    padded = []
    for given in rows:
        row = given.to(rows[0].dtype).expand(-1, *rows[0].shape[1:])  # torch copies each into a tensor like the first
        # as many rows as the longest has, of which some are cut off: none or one missing would be code of its own
        rest = row.new_full((longest, *row.shape[1:]), value)
        is_left = side == "left"
        joined = torch.cat([rest, row] if is_left else [row, rest])
        padded.append(joined.narrow(0, row.shape[0] if is_left else 0, longest))
    return torch.stack(padded, 0 if batch_first else 1)


_LIBRARY.impl("pad_sequence", _padded, "CompositeImplicitAutograd")

#: (rows, whether the batch comes first, the value, "left" or "right") -> the rows as one tensor, as long as the longest.
pad_sequence = torch.ops.magpy.pad_sequence.default


def is_padding(node: torch.fx.Node) -> bool:
    """Whether a node calls torch's function, as `torch.nn` does."""
    return node.target is torch._C._nn.pad_sequence and not node.kwargs
