"""Runs a graph with rounding noise, which shows how far apart two correct computations of it may be. Key type: Noisy.

Monte Carlo arithmetic (D. S. Parker, Monte Carlo Arithmetic: exploiting randomness in floating-point arithmetic, 1997): each
value is changed at random by up to one unit in its last place, as if it had been rounded otherwise. Whole numbers are left
as they are: masks, counts and labels are exact in every correct computation.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.fx

from magpy_core._compat.torch.tensor_guards import storage_key
from magpy_core.backends.sharing import changed


class Noisy(torch.fx.Interpreter):
    """``seed``: of the noise, which takes nothing from the program's random streams."""

    def __init__(self, gm: torch.fx.GraphModule, seed: int) -> None:
        super().__init__(gm)
        self._generator = torch.Generator().manual_seed(seed)

    def run_node(self, n: torch.fx.Node) -> Any:
        result = super().run_node(n)
        if n.op not in ("call_function", "call_method"):
            return result
        given = self.map_nodes_to_values([node for node in n.all_input_nodes], n)
        memory = {storage_key(value) for value in _tensors(given)}
        writes = bool(changed(n))
        if isinstance(result, torch.Tensor):
            return self._after(result, memory, writes)
        if type(result) in (list, tuple):
            return type(result)(self._after(one, memory, writes) if isinstance(one, torch.Tensor) else one for one in result)
        return result

    def _after(self, result: torch.Tensor, memory: set[int], writes: bool) -> torch.Tensor:
        is_new = storage_key(result) not in memory
        if not is_noisy(result) or (result.requires_grad and (result.is_leaf or not is_new)) or not (is_new or writes):
            return result
        noise = self.noise(result)
        if result.requires_grad:
            return result + noise
        with torch.no_grad():
            result.add_(noise)
        return result

    def noise(self, tensor: torch.Tensor) -> torch.Tensor:
        """What is to be added to a tensor: up to one unit in the last place of each element that is no whole number."""
        value = tensor.detach()
        random = torch.rand(value.shape, generator=self._generator, dtype=torch.float32).mul_(2).sub_(1).to(value.dtype)
        noise = value * random * torch.finfo(value.dtype).eps
        return torch.where(torch.isfinite(value) & (value != value.round()), noise, torch.zeros_like(noise))


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
