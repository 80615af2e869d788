"""Where a graph may be cut: only new tensors that share no memory may pass from one unit to the next.

In doubt, the graph is compiled as one. Key functions: `may_cut`, `writes_stay_inside`, `results_of`, `least_work`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.fx

from magpy_core._compat.torch.fake import is_fake, is_symbolic
from magpy_core._compat.torch.tensor_guards import storage_key
from magpy_core._compat.torch.torch_state import switches_modes
from magpy_core.backends.blocks.units import Unit, Value
from magpy_core.backends.sharing import viewed, written
from magpy_core.limits import LIMITS

#: A separate call, forward and backward, was measured to take 140 µs more than as a part of a larger graph, on a busy core
#: where so much work takes 4 ms. An accelerator does more in that time while the host continues (not measured).
_LEAST_WORK_CPU, _LEAST_WORK = 1e8, 3e10


def is_ordinary(value: Any) -> bool:
    """Whether a value is a strided fake tensor of static size that is not a negative or conjugate view."""
    return (
        is_fake(value)
        and value.layout is torch.strided
        and not is_symbolic(value)
        and not value.is_conj()
        and not value.is_neg()
    )


def may_cut(nodes: Sequence[torch.fx.Node], fakes: Sequence[Any]) -> bool:
    """Whether a graph has only ordinary inputs and operations whose meaning does not depend on modes set by others."""
    plain = all(node.op in ("call_function", "call_method") and not switches_modes(node.target) for node in nodes)
    return plain and all(map(is_ordinary, fakes))


def writes_stay_inside(units: Sequence[Unit], values: Mapping[torch.fx.Node, Any], outputs: Sequence[torch.fx.Node]) -> bool:
    """Whether each unit writes only its own results, or an input of the graph that no other unit uses."""
    users: dict[int, set[int]] = {}
    for i, unit in enumerate(units):
        for node in unit.inputs:
            if node.op == "placeholder":
                users.setdefault(storage_key(values[node]), set()).add(i)
    memory = Counter(storage_key(value) for value in values.values())
    for unit in units:
        inside = set(unit.nodes)
        for root in {[target, *viewed(target)][-1] for node in unit.nodes for target in written(node)} - inside:
            key = storage_key(values[root]) if root.op == "placeholder" else 0
            if not key or len(users[key]) > 1 or memory[key] > 1 or root in outputs:
                return False
    return True


def results_of(
    module: torch.fx.GraphModule, inputs: Sequence[torch.Tensor], leaving: Sequence[bool], mode: Any
) -> tuple[list[Value], int] | None:
    """The results of a unit for these fakes, and a rough number of arithmetic operations; None if a result that goes to
    another unit may share memory or is not ordinary.

    ``leaving``: which outputs go to another unit. The others are results of the graph, and may share memory with each other.
    """
    from torch.utils.flop_counter import FlopCounterMode  # which imports Triton, where it is installed

    given = [_copy_of(tensor, mode) for tensor in inputs]
    versions = [_version_of(tensor) for tensor in given]
    with mode, FlopCounterMode(display=False) as counter:
        results = module(*given)
    if not all(map(is_ordinary, results)):
        return None
    taken = {storage_key(tensor) for tensor in given}
    memory = [storage_key(tensor) for tensor in results]
    values = [Value(tuple(t.shape), tuple(t.stride()), t.dtype, t.device, t.requires_grad) for t in results]
    for key, value, leaves in zip(memory, values, leaving, strict=True):
        if key in taken or (leaves and (memory.count(key) > 1 or value.fake(mode).stride() != value.stride)):
            return None
    changed = [old != _version_of(tensor) for old, tensor in zip(versions, given, strict=True)]
    if any(new and not tensor.is_leaf for new, tensor in zip(changed, given, strict=True)):
        return None
    elements = sum(tensor.numel() for tensor in (*given, *results))
    return values, counter.get_total_flops() + LIMITS.element_operations * elements


def least_work(device: torch.device) -> float:
    """How many arithmetic operations a block needs to make the overhead of a separate call, forward and backward,
    negligible."""
    return _LEAST_WORK_CPU * torch.get_num_threads() if device.type == "cpu" else _LEAST_WORK


def _version_of(tensor: torch.Tensor) -> int:
    """The version of a tensor; inference tensors have none."""
    return 0 if tensor.is_inference() else tensor._version


def _copy_of(tensor: torch.Tensor, mode: Any) -> torch.Tensor:
    """A fake like ``tensor`` that the run may write."""
    copy = Value(tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype, tensor.device, False).fake(mode)
    if not tensor.requires_grad or torch.is_inference_mode_enabled():
        return copy
    copy.requires_grad_()
    with mode, torch.enable_grad():
        return copy if tensor.is_leaf else copy.clone()
