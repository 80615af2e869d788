"""Runs a graph with rounding noise, which shows how far apart two correct computations of it may be. Key type: Noisy.

Monte Carlo arithmetic (D. S. Parker, Monte Carlo Arithmetic: exploiting randomness in floating-point arithmetic, 1997): each
value is changed at random by up to one unit in its last place, as if it had been rounded otherwise. Whole numbers are left
as they are: masks, counts and labels are exact in every correct computation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import torch
import torch.fx

from magpy_core._compat.torch.operator_schemas import combines_elements, is_mutable
from magpy_core._compat.torch.tensor_guards import storage_key
from magpy_core.backends.sharing import changed, written
from magpy_core.limits import LIMITS
from magpy_core.opgraph.functions import operator_name
from magpy_core.verification.inside import NoisyInside, may_look_inside

#: Operations that round to another type, or change nothing: every correct computation rounds as they do.
_CONVERSIONS = frozenset(
    {"to", "type", "type_as", "half", "bfloat16", "float", "double", "_to_copy", "convert_element_type"}
)


class Noise:
    """``generator``: of the noise. It keeps no graph and no values: the hooks of what a run computes keep it."""

    def __init__(self, generator: torch.Generator) -> None:
        self._generator = generator

    def of_gradient(self, gradient: torch.Tensor, summands: int) -> torch.Tensor:
        """A gradient with noise."""
        if not is_noisy(gradient):
            return gradient
        return gradient + self.of(gradient) + self._shared(gradient, summands)

    def _shared(self, tensor: torch.Tensor, summands: int) -> torch.Tensor:
        """Noise that slices share: a normalization subtracts one mean from all elements of a channel or a row, and the
        rounding of that mean shows where the elements are summed up again."""
        value = tensor.detach()
        size = float(value.float().square().mean().sqrt()) if value.numel() else 0.0
        found = torch.zeros(value.shape)
        for dim, length in enumerate(value.shape):
            shape = [length if one == dim else 1 for one in range(value.ndim)]
            found += torch.rand(shape, generator=self._generator).mul_(2).sub_(1)
        return self._of(value, found.to(value.dtype) * (size * _equal(summands) * self._eps(value)))

    def of(self, tensor: torch.Tensor, units: float = 1.0) -> torch.Tensor:
        """What is to be added to a tensor: up to so many units in the last place of each element that is no whole
        number."""
        value = tensor.detach()
        random = torch.rand(value.shape, generator=self._generator, dtype=torch.float32).mul_(2).sub_(1).to(value.dtype)
        kind = torch.finfo(value.dtype)
        last_places = value.abs().clamp_min_(kind.tiny) * max(kind.eps, units * self._eps(value))
        return self._of(value, random * last_places)

    @staticmethod
    def _eps(value: torch.Tensor) -> float:
        """Of the numbers in which it is computed: sums of short ones are in float32."""
        return min(torch.finfo(value.dtype).eps, torch.finfo(torch.float32).eps)

    @staticmethod
    def _of(value: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        # adding a negative zero changes nothing, not even the sign of a zero
        return torch.where(torch.isfinite(value) & (value != value.round()), noise, torch.full_like(noise, -0.0))


class Noisy(torch.fx.Interpreter):
    """``seed``: of the noise, which takes nothing from the program's random streams."""

    def __init__(self, gm: torch.fx.GraphModule, seed: int) -> None:
        super().__init__(gm)
        generator = torch.Generator().manual_seed(seed)
        self.noise = Noise(generator)
        self._inside = NoisyInside(generator)

    def run_node(self, n: torch.fx.Node) -> Any:
        with self._inside if may_look_inside(n.target) else nullcontext():
            result = super().run_node(n)
        if n.op not in ("call_function", "call_method"):
            return result
        given = _tensors(self.map_nodes_to_values([node for node in n.all_input_nodes], n))
        memory = {storage_key(value) for value in given}
        writes = bool(changed(n)) or is_mutable(n)
        summands, exact = summands_of([*given, *_tensors([result])]), _name(n) in _CONVERSIONS

        def after(value: Any) -> Any:
            if not isinstance(value, torch.Tensor):
                return value
            return self._after(value, memory, summands, writes=writes, exact=exact)

        return type(result)(map(after, result)) if type(result) in (list, tuple) else after(result)

    def fetch_args_kwargs_from_env(self, n: torch.fx.Node) -> tuple[Any, Any]:
        """What an operation adds up has noise before that: its result has no trace of summands that cancel."""
        args, kwargs = super().fetch_args_kwargs_from_env(n)
        name = _name(n)
        if n.op not in ("call_function", "call_method") or changed(n) or is_mutable(n):
            return args, kwargs
        if name in _CONVERSIONS or not combines_elements(name):
            return args, kwargs
        units = units_of_each(summands_of(_tensors(self.map_nodes_to_values([node for node in n.all_input_nodes], n))))
        kept = {*written(n), *_statistics(n)}

        def load(node: torch.fx.Node) -> Any:
            value = self.env[node]
            if node in kept or not isinstance(value, torch.Tensor) or not is_noisy(value):
                return value
            return value + self.noise.of(value, units)

        return torch.fx.node.map_arg(n.args, load), torch.fx.node.map_arg(n.kwargs, load)

    def _after(self, result: torch.Tensor, memory: set[int], summands: int, *, writes: bool, exact: bool) -> torch.Tensor:
        is_new = storage_key(result) not in memory
        if not is_noisy(result) or (result.requires_grad and (result.is_leaf or not is_new)) or not (is_new or writes):
            return result
        noise = torch.full_like(result, -0.0) if exact else self.noise.of(result)
        if result.requires_grad:
            result = result + noise
            result.register_hook(partial(self.noise.of_gradient, summands=summands))
            return result
        with torch.no_grad():
            result.add_(noise)
        return result


def _name(node: torch.fx.Node) -> str:
    """Of the operator, without that of its overload: ``_to_copy`` of ``_to_copy.default``."""
    return operator_name(node).partition(".")[0]


def _statistics(node: torch.fx.Node) -> list[torch.fx.Node]:
    """What follows the input, and the gradient, of a normalization in ATen: among it are running statistics, which it writes
    without a word in its schema."""
    if not isinstance(node.target, torch._ops.OpOverload) or "norm" not in (name := _name(node)):
        return []
    read = node.args[: 2 if "backward" in name else 1]
    return [one for one in node.all_input_nodes if one not in read]


def summands_of(tensors: Sequence[torch.Tensor]) -> int:
    """How many elements an operation on these tensors, or its gradient, may add up to one: as many as one of them is long,
    or as elements share one of the smallest."""
    sizes = [tensor.numel() for tensor in tensors if tensor.ndim and tensor.numel() > 1]
    longest = max((size for tensor in tensors for size in tensor.shape), default=1)
    return max([longest, *(max(sizes) // size for size in sizes)])


def _equal(summands: int) -> float:
    """Units in the last place of a sum: summands of one sign are rounded the same way."""
    return max(1.0, LIMITS.noise_of_sums * min(summands, LIMITS.most_summands))


def units_of_each(summands: int) -> float:
    """Units in the last place of each summand, which explain how the sum is rounded where summands cancel."""
    return max(1.0, 2 * LIMITS.noise_of_sums * math.sqrt(min(summands, LIMITS.most_summands)))


def is_noisy(tensor: torch.Tensor) -> bool:
    """Whether its elements are rounded: floating-point numbers in memory."""
    return tensor.is_floating_point() and tensor.layout is torch.strided and tensor.dtype.itemsize > 1


def _tensors(values: Any) -> list[torch.Tensor]:
    found = []
    for value in values:
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, list | tuple):
            found += _tensors(value)
    return found
