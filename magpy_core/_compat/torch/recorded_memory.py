"""Where torch has put the memory of a recording. Key function: is_elsewhere."""

from __future__ import annotations

from typing import Any

import torch


def is_elsewhere(tensor: torch.Tensor, pool: Any) -> bool:
    """Whether a tensor that was made during the recording for ``pool`` is in another one, as under
    ``torch.cuda.use_mem_pool``: it would be given to the program again."""
    address = tensor.data_ptr()
    for segment in torch.cuda.memory_snapshot():
        if segment["address"] <= address < segment["address"] + segment["total_size"]:
            found = segment.get("segment_pool_id")
            return found is not None and tuple(found) != tuple(pool)
    return False
