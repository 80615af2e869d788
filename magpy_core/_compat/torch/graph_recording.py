"""What torch does beside the recording of a CUDA graph. Key functions: busy_threads, clean_up, is_elsewhere."""

from __future__ import annotations

import sys
import threading
from contextlib import suppress
from types import FrameType
from typing import Any

import torch

#: What is outermost in threads that do nothing of the kind: loaders that pin memory, compilers, queues, progress bars,
#: notebooks, what logs numbers, MagPy's own.
_HARMLESS = (
    "torch.utils.data.", "torch._inductor.", "torch.utils.tensorboard.", "multiprocessing.", "tqdm.", "ipykernel.", "zmq.",
    "IPython.", "tensorboard.", "wandb.", "magpy_core.", "lsp_server.",
)  # fmt: skip
_STARTING = frozenset({"threading", "multiprocessing.pool"})


def busy_threads() -> list[str]:
    """The names of the other threads that may run code of the program. While a call is recorded, none may wait for the
    device or draw its random numbers (before torch 2.13): that raises, in the program."""
    frames = sys._current_frames()
    others = [thread for thread in threading.enumerate() if thread is not threading.current_thread()]
    return [thread.name for thread in others if thread.ident in frames and not _is_harmless(frames[thread.ident])]


def _is_harmless(frame: FrameType) -> bool:
    """Whether a thread began in a module that uses no device, or that waits for work (of which there is none now)."""
    outermost: FrameType | None = frame
    began = ""
    while outermost is not None:
        module = outermost.f_globals.get("__name__", "")
        if module not in _STARTING:
            began = module
        outermost = outermost.f_back
    if not began:
        return True  # it is just starting, or ending
    if began.startswith("concurrent.futures."):  # of a pool: it waits for work where nothing else has been called
        return str(frame.f_globals.get("__name__", "")).startswith("concurrent.futures.")
    return began.startswith(_HARMLESS)


def clean_up(index: int, pool: Any) -> bool:
    """After a failed recording for ``pool``, the allocator may go on as if the recording did, and so may the device's random
    generator: then every later draw raises. Whether the generator had to be freed. If so it has a new state with the same
    seed and offset, which CUDA graphs that were recorded before don't know."""
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


def is_elsewhere(tensor: torch.Tensor, pool: Any) -> bool:
    """Whether a tensor that was made during the recording for ``pool`` is in another one, as under
    ``torch.cuda.use_mem_pool``: it would be given to the program again."""
    address = tensor.data_ptr()
    for segment in torch.cuda.memory_snapshot():
        if segment["address"] <= address < segment["address"] + segment["total_size"]:
            found = segment.get("segment_pool_id")
            return found is not None and tuple(found) != tuple(pool)
    return False
