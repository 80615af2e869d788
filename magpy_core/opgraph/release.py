"""Memory of values that the program has dropped while it is recorded.

A recording knows the values of operations by the identity of their tensors, so it keeps the tensors. Without a gradient
graph eager would have freed their memory, and a model that fits would not fit while it is recorded. What only the recording
refers to can't be seen again: its storage is emptied, and the tensor stays, so that no other object gets its identity.
Key function: release_unreachable.
"""

from __future__ import annotations

import sys
from collections.abc import Container, Mapping
from typing import Any

import torch

from magpy_core._compat.torch.autograd import is_view
from magpy_core._compat.torch.tensor_guards import no_torch_function, tensor_users, tensors_in_storage

#: Bytes that operations may make before the next search.
EVERY = 32 * 2**20


def _references(values: Mapping[int, tuple[torch.Tensor, Any]]) -> dict[int, int]:
    return {key: sys.getrefcount(tensor) for key, (tensor, _) in values.items()}


_OURS = _references({0: (torch.empty(0), None)})[0]  # of a tensor that is only in such a table


def release_unreachable(
    values: Mapping[int, tuple[torch.Tensor, Any]], outside: Container[int], *, histories: bool = False
) -> int:
    """Empty the storages of those tensors of ``values`` that only it refers to; ``outside``: ids of tensors to leave alone.
    ``histories``: detach them from autograd's graph too, which keeps the old shape of a leaf. Returns how many bytes were
    freed."""
    reached = _references(values)
    for key, (tensor, _) in values.items() if histories else ():
        if reached[key] == _OURS and key not in outside and tensor.grad_fn is not None and not is_view(tensor):
            with no_torch_function():
                tensor.detach_()
    users: dict[int, int] = {}  # storage: tensors of the table in it; 0 once one of them may be seen again
    first: dict[int, int] = {}
    for key, (tensor, _) in values.items():
        if type(tensor) is not torch.Tensor or tensor.layout is not torch.strided:
            continue
        storage = tensor.untyped_storage()._cdata
        free = reached[key] == _OURS and key not in outside and tensor_users(tensor) == 1 and users.get(storage, 1) > 0
        users[storage] = users.get(storage, 0) + 1 if free else 0
        first.setdefault(storage, key)
    freed = 0
    for storage, count in users.items():
        tensor = values[first[storage]][0]
        if count and tensors_in_storage(tensor) == count:
            memory = tensor.untyped_storage()
            if memory.nbytes() and memory.resizable():
                freed += memory.nbytes()
                memory.resize_(0)
    return freed


def made_bytes(result: Any) -> int:
    """Bytes of an operation's result. Views count too: at worst, a search comes too early."""
    if type(result) is torch.Tensor:
        return result.nbytes if result.layout is torch.strided else 0
    return sum(made_bytes(r) for r in result) if type(result) in (tuple, list) else 0
