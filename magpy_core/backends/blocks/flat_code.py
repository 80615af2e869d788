"""Flat code: what computes elements one by one, compiled once for flat views of tensors of any shape.

Key type: FlatCode; key functions: `flat_inputs`, `flat_key`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.fx

from magpy_core._compat.torch.fake import fakify, guard_namespace, new_fake_mode, shape_guards, sym_expression
from magpy_core._compat.torch.operator_calls import OperatorCalls
from magpy_core._compat.torch.tensor_guards import storage_key
from magpy_core._compat.torch.torch_state import preserve_torch_state
from magpy_core.backends.blocks.units import Unit, module_of, operations_of
from magpy_core.backends.sharing import copied
from magpy_core.knowledge.operators import ELEMENTWISE

#: Elements of a tensor from which on code for several threads is faster.
_FOR_THREADS = 8192


class FlatCode:
    """What is compiled for flat tensors of any size, once: ``module``, for ``fakes`` of the fake mode ``mode``."""

    def __init__(self, unit: Unit, values: Sequence[torch.Tensor], grad: bool) -> None:
        self.module = module_of(unit, grad)
        for node in self.module.graph.nodes:
            node.meta.pop("val", None)  # of one size
        self._flat = [node in unit.flat for node in unit.inputs]
        size = next(value.numel() for value, flat in zip(values, self._flat, strict=True) if flat)
        self.mode, self._shape_env = new_fake_mode(dynamic=False)
        first: torch.Tensor | None = None
        self.fakes: list[torch.Tensor] = []
        for i, (value, flat) in enumerate(zip(values, self._flat, strict=True)):
            if flat and first is not None:
                with self.mode:
                    fake = torch.empty(first.shape, dtype=value.dtype, device="cpu")
            else:
                real = torch.empty(size if flat else (), dtype=value.dtype, device="cpu")
                fake = fakify(self.mode, real, f"L[{i}]", {0} if flat else set())
                first = fake if flat else first
            self.fakes.append(fake)

    @property
    def is_elementwise(self) -> bool:
        """Whether a run of the module computes elements one by one."""
        with preserve_torch_state(), torch.no_grad(), self.mode:
            given = [copied(fake) for fake in self.fakes]
            with OperatorCalls() as seen:
                self.module(*given)
        size = sym_expression(next(fake.shape[0] for fake in self.fakes if fake.dim()))
        return all(_is_elementwise(operator, tensors, size) for operator, tensors in seen.calls)

    def serves(self, size: int) -> bool:
        """Whether what was assumed when it was compiled holds for tensors of ``size`` elements."""
        names = [f"L[{i}]" for i in range(len(self.fakes))]
        guards = shape_guards(self._shape_env, self.fakes, names)
        given = [torch.empty(size if flat else (), device="meta") for flat in self._flat]
        return all(eval(guard, dict(guard_namespace()), {"L": given}) for guard in guards)


def _is_elementwise(operator: Any, tensors: Sequence[torch.Tensor], size: Any) -> bool:
    """Whether ``operator`` computes the elements of tensors of ``size`` elements one by one."""
    if operator is torch.ops.prim.device.default:
        return True
    known = torch.Tag.pointwise in operator.tags or operator.overloadpacket.__name__ in ELEMENTWISE
    if not known or torch.Tag.nondeterministic_seeded in operator.tags:
        return False
    return all(not x.dim() or (x.dim() == 1 and sym_expression(x.shape[0]) == size) for x in tensors)


def flat_inputs(unit: Unit, value_of: Callable[[torch.fx.Node], Any]) -> frozenset[torch.fx.Node] | None:
    """The inputs that flat code gets as views: all but single numbers. They must be contiguous and of one shape, with memory
    of their own, and the unit have no results; None otherwise."""
    values = [value_of(node) for node in unit.inputs]
    if unit.outputs or not all(isinstance(value, torch.Tensor) for value in values):
        return None
    large = [value for value in values if value.dim()]
    if not large or len({storage_key(value) for value in values}) < len(values):
        return None
    shape = large[0].shape
    if shape.numel() < 2 or not all(value.shape == shape and value.is_contiguous() for value in large):
        return None
    return frozenset(node for node, value in zip(unit.inputs, values, strict=True) if value.dim())


def flat_key(unit: Unit, values: Mapping[torch.fx.Node, Any]) -> tuple[Any, ...]:
    """A key that is equal for units that the same flat code serves."""
    _, operations = operations_of(unit)
    inputs = tuple((node in unit.flat, values[node].dtype) for node in unit.inputs)
    size = next(values[node].numel() for node in unit.inputs if node in unit.flat)
    for_threads = size >= _FOR_THREADS and torch.get_num_threads() > 1
    return "flat", unit.grad_before, operations, inputs, for_threads
