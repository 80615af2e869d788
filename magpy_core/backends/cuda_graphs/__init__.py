"""Compiled code of a device, replayed as a CUDA graph where that is faster: one launch in place of one for each kernel.

A graph without autograd is separated into what the host computes and what the device does; the latter is recorded once and
replayed. Key function: `compile_replayed`; key type: `Replayed`.
"""

from magpy_core.backends.cuda_graphs.compiling import compile_replayed
from magpy_core.backends.cuda_graphs.replayed import Replayed

__all__ = ["Replayed", "compile_replayed"]
