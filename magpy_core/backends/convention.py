"""How compiled code is called in place of the graph that it was compiled from. Key type: Convention."""

from __future__ import annotations

from dataclasses import dataclass

from magpy_core.backends.calling import Boxed, Direct, Inputs, Outputs, adapt, is_identity, keep_versions
from magpy_core.backends.gradients import call_without_autograd


@dataclass(frozen=True)
class Convention:
    """``arity``: of the original graph. ``freed``: the results whose history a backward pass in the graph has freed; None
    if the code is called under autograd. ``numbers``: the inputs and outputs of a lowered graph; None if it is not lowered.
    ``uncounted``: the positions of inputs whose writes eager does not count."""

    arity: int
    freed: tuple[int, ...] | None = None
    numbers: tuple[Inputs, Outputs] | None = None
    uncounted: tuple[int, ...] = ()

    def applied(self, fn: Direct, boxed: Boxed | None) -> tuple[Direct, Boxed | None]:
        """Compiled code as functions that are called like the original graph, with arguments and with a list."""
        if self.freed is not None:
            fn, boxed = call_without_autograd(fn, boxed, self.freed)
        if self.numbers is not None and not is_identity(*self.numbers, self.arity):
            fn, boxed = adapt(*self.numbers, self.arity, fn, boxed), None
        return keep_versions(fn, boxed, self.uncounted) if self.uncounted else (fn, boxed)
