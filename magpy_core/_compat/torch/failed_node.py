"""Which operation of a graph a compiler failed at. Key function: failed_node."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType

import torch.fx

# torch attaches it to the error as text only; every version so far runs graphs by this method while it traces them
_RUNS_NODE = torch.fx.Interpreter.run_node.__code__


def failed_node(error: BaseException) -> torch.fx.Node | None:
    """The operation that an interpreter of a graph was running when ``error`` was raised: the innermost one that comes from
    a program's line; None: that is not known."""
    found = None
    cause: BaseException | None = error
    while cause is not None:
        for node in _run_nodes(cause.__traceback__):
            if node.meta.get("magpy_site") is not None:
                found = node
        cause = cause.__cause__
    return found


def _run_nodes(traceback: TracebackType | None) -> Iterator[torch.fx.Node]:
    while traceback is not None:
        frame = traceback.tb_frame
        if frame.f_code is _RUNS_NODE and isinstance(node := frame.f_locals.get("n"), torch.fx.Node):
            yield node
        traceback = traceback.tb_next
