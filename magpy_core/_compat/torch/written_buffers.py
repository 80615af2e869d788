"""Corrects how Inductor orders what reads a buffer that a kernel of torch's own has written in place.

Such kernels (`bernoulli_`, `index_put_` that accumulates, `put_`) write a copy of their argument, and what reads the copy
later depends on the kernel by another name of the buffer. To fuse nodes with different loops, the C++ backend computes the
loops of one again, and with them its dependencies, without these names (torch 2.11 to 2.13). The fused kernel may then run
before the values are written: a mask of dropout after a layer norm is NaN.

Key function: `ordered_after_writes`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def ordered_after_writes() -> Iterator[None]:
    """While Inductor compiles a graph: a node whose loops are computed again keeps the names of its dependencies."""
    from torch._inductor.dependencies import StarDep, WeakDep
    from torch._inductor.scheduler import SchedulerNode

    original: Any = SchedulerNode.recompute_size_and_body

    def recompute_size_and_body(self: Any, *args: Any, **kwargs: Any) -> None:
        added = [dep for dep in self.read_writes.reads if isinstance(dep, WeakDep | StarDep)]  # no loop shows them
        original(self, *args, **kwargs)
        self.set_read_writes(self.read_writes.with_read(type(self.read_writes.reads)(added)).rename(self.mutation_renames))

    SchedulerNode.recompute_size_and_body = recompute_size_and_body  # type: ignore[method-assign]
    try:
        yield
    finally:
        SchedulerNode.recompute_size_and_body = original  # type: ignore[method-assign]
