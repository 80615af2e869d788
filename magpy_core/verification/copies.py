"""Copies of a graph's inputs, for runs that leave the program's tensors as they are. Key type: Copies."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any

import torch

from magpy_core._compat.torch.tensor_guards import storage_key
from magpy_core.limits import LIMITS
from magpy_core.verification.noise import Noisy, is_noisy


class Copies:
    """``inputs`` for several runs: new memory, and no history of autograd. Where memory is short, only what the graph writes
    gets new memory: then what compiled code writes besides is not found. Raises MemoryError."""

    def __init__(self, inputs: Sequence[Any], written: Collection[int]) -> None:
        self.inputs = inputs
        tensors = [i for i, value in enumerate(inputs) if isinstance(value, torch.Tensor)]
        sizes = {storage_key(inputs[i]): inputs[i].untyped_storage().nbytes() for i in tensors}
        most = LIMITS.verify_memory * free_memory() / 2  # of two runs
        self.written = tensors if sum(sizes.values()) <= most else sorted(set(written).intersection(tensors))
        self._memory = {storage_key(inputs[i]) for i in self.written}
        copied = sum(sizes[key] for key in self._memory)
        if copied > most:
            raise MemoryError(f"copies of what it writes take {copied / 2**20:,.0f} MiB")

    def made(self, noise: Noisy | None = None) -> list[Any]:
        """New copies, with noise if asked for."""
        storages: dict[int, torch.UntypedStorage] = {}

        def copy(tensor: torch.Tensor) -> torch.Tensor:
            detached = tensor.detach()
            key = storage_key(tensor)
            if key in self._memory:
                if key not in storages:
                    storages[key] = tensor.untyped_storage().clone()
                detached = torch.empty(0, dtype=tensor.dtype).set_(
                    storages[key], tensor.storage_offset(), tensor.shape, tensor.stride()
                )
            if noise is not None and is_noisy(tensor):
                change = noise.noise.of(detached)
                if key in self._memory:
                    if all(n > 0 or size < 2 for n, size in zip(tensor.stride(), tensor.shape, strict=True)):
                        detached.add_(change)
                else:
                    detached = detached + change
            return detached.requires_grad_(tensor.requires_grad)

        with torch.no_grad():
            return [copy(value) if isinstance(value, torch.Tensor) else value for value in self.inputs]


def free_memory() -> float:
    """Bytes that the system can still give; infinite where it does not tell."""
    with suppress(OSError, ValueError, IndexError), open("/proc/meminfo", encoding="ascii") as file:
        return next(1024.0 * int(line.split()[1]) for line in file if line.startswith("MemAvailable"))
    with suppress(OSError, ValueError, AttributeError):
        return float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return float("inf")
