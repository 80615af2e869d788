"""Why a guard failed: each read is evaluated again to find the value that changed, its old and new value, and its location.

Key type: TensorFacts; key functions: ``read_failure``, ``tensor_failure``.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from magpy_core._compat.torch.tensor_guards import no_torch_function
from magpy_core.findings import Location
from magpy_core.refgraph.failure import Failure
from magpy_core.refgraph.guard_kind import Read
from magpy_core.refgraph.kinds import bounded_repr, is_a
from magpy_core.refgraph.source import Source


def read_failure(
    read: Read, args: tuple[Any, ...], kwargs: dict[str, Any], where: Callable[[Any], Location | None]
) -> Failure | None:
    """The failure of one read, or None when it holds."""
    failure = read.kind.failure(read, lambda source: source.evaluate(args, kwargs))
    return failure and replace(failure, location=where(read.site))


def tensor_failure(
    source: Source, recorded: TensorFacts, args: tuple[Any, ...], kwargs: dict[str, Any], free: Set[int]
) -> Failure | None:
    """How a graph input differs from the recorded one; None if a capture would accept it."""
    value = source.evaluate(args, kwargs)
    name = source.describe()
    if not is_a(value, torch.Tensor):
        return Failure("MP201", name, recorded.describe(), bounded_repr(value), source=source)
    now = TensorFacts.of(value)
    if len(now.shape) == len(recorded.shape) and replace(now, shape=recorded.shape, stride=recorded.stride) == recorded:
        dims = tuple(
            d for d, (a, b) in enumerate(zip(recorded.shape, now.shape, strict=True)) if a != b and (d not in free or b < 2)
        )
        if dims:
            of_module = issubclass(recorded.type, nn.Parameter)
            return Failure(
                "MP201", f"{name}.shape", str(recorded.shape), str(now.shape), source=source,
                dims=() if of_module else dims, other_parameter=of_module,
            )  # fmt: skip
        if recorded.stride != now.stride and not free:
            return Failure("MP201", f"{name}.stride()", str(recorded.stride), str(now.stride), source=source)
        return None
    return Failure("MP201", name, recorded.describe(), now.describe(), source=source)


@dataclass(frozen=True)
class TensorFacts:
    """What the native tensor check compares."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device
    requires_grad: bool
    type: type

    @staticmethod
    def of(t: torch.Tensor) -> TensorFacts:
        with no_torch_function():  # a user-defined subclass must run no code here
            stride = tuple(t.stride()) if t.layout is torch.strided else ()
            return TensorFacts(tuple(t.shape), stride, t.dtype, t.device, t.requires_grad, type(t))

    def describe(self) -> str:
        grad = ", requires_grad" if self.requires_grad else ""
        return f"{self.type.__name__}{self.shape} {str(self.dtype).removeprefix('torch.')} on {self.device}{grad}"
