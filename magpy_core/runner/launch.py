"""Starts a run, in one process or in several. Key functions: launch, launch_async. Imports no torch.

handle = launch(RunRequest(script="train.py"))
for message in handle:
    ...
print(handle.outcome.kind)
"""

from __future__ import annotations

from magpy_core.runner.distributed import RanksHandle
from magpy_core.runner.handle import AsyncRunHandle, RunHandle
from magpy_core.runner.protocol import Message
from magpy_core.runner.request import Outcome, RunRequest

__all__ = ["AsyncRunHandle", "Message", "Outcome", "RunHandle", "RunRequest", "launch", "launch_async"]


def launch(request: RunRequest, nproc: int = 0) -> RunHandle:
    """Starts ``request``: an ordinary process, or ``nproc`` of torch.distributed, even if that is 1. Always returns a
    handle; if that fails, its outcome says why."""
    if (request.script is None) == (request.module is None):
        raise ValueError("a RunRequest names either a script or a module")
    return RanksHandle(request, nproc) if nproc else RunHandle(request)


def launch_async(request: RunRequest, nproc: int = 0) -> AsyncRunHandle:
    """Like ``launch``, for a running event loop: ``async for message in launch_async(request)``."""
    return AsyncRunHandle(launch(request, nproc))
