"""What torch leaves behind after the recording of a CUDA graph has failed. Key function: clean_up.

The allocator may go on as if the recording went on, and the random generator too: then every later draw raises.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import torch


def clean_up(index: int, pool: Any) -> bool:
    """Whether the generator of that device had to be freed of a recording for ``pool``. If so it has a new state with the
    same seed and offset, which CUDA graphs that were recorded before don't know."""
    with suppress(RuntimeError):  # it has ended as it should
        torch._C._cuda_endAllocateToPool(index, pool)
    generator = torch.cuda.default_generators[index]
    before = generator.clone_state()
    try:
        torch.empty(1, device=torch.device("cuda", index)).uniform_(generator=generator)
    except RuntimeError as error:
        is_stuck = "outside graph capture" in str(error)
        if is_stuck:
            generator.graphsafe_set_state(before)
        return is_stuck
    generator.set_state(before.get_state())
    return False
