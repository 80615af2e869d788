"""The closure of an optimizer's step, which may run before the step is called. Key function: closure_of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

_CLOSURE_FIRST = frozenset(
    ("Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "ASGD", "Muon", "NAdam", "RAdam", "RMSprop", "Rprop",
     "SGD", "SparseAdam")
)  # fmt: skip
"""Optimizers of torch whose step calls its closure once, with gradients enabled, before it does anything else, and returns
what that returns. LBFGS calls it again and again."""


def closure_of(step: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Callable[[], Any] | None:
    """The closure that the call of ``step``, an optimizer's own function, would begin with; None: there is none, or it can't
    be told from the rest of the step."""
    kind, _, name = step.__qualname__.rpartition(".")
    if name != "step" or kind not in _CLOSURE_FIRST or not step.__module__.startswith("torch.optim."):
        return None
    if getattr(step, "hooked", False):  # hooks run before the closure
        return None
    given = [*args[1:], *(kwargs[key] for key in kwargs if key == "closure")]
    if len(given) != 1 or len(args) + len(kwargs) != 2:
        return None
    closure: Callable[[], Any] | None = given[0]
    return closure
