"""Threads that could use a device while a call is recorded. Key function: busy_threads.

Meanwhile no thread may wait for the device or draw its random numbers (before torch 2.13): that raises, in the program.
"""

from __future__ import annotations

import sys
import threading
from types import FrameType

#: What is outermost in threads that do nothing of the kind: loaders that pin memory, compilers, queues, progress bars,
#: notebooks, what logs numbers, MagPy's own.
_HARMLESS = (
    "torch.utils.data.", "torch._inductor.", "torch.utils.tensorboard.", "multiprocessing.", "tqdm.", "ipykernel.", "zmq.",
    "IPython.", "tensorboard.", "wandb.", "magpy_core.", "lsp_server.",
)  # fmt: skip
_STARTING = frozenset({"threading", "multiprocessing.pool"})


def busy_threads() -> list[str]:
    """The names of the other threads that may run code of the program."""
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
