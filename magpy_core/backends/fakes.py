"""Example inputs for a backend: fakes with the real requires_grad, leaf-ness, strides and aliasing.

Key function: `make_fake_inputs`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch

from magpy_core._compat.torch import fake as compat
from magpy_core._compat.torch.tensor_guards import storage_key
from magpy_core._compat.torch.torch_state import preserve_torch_state
from magpy_core.findings import Unsupported


class FakeInputs(NamedTuple):
    """``fakes`` in the order of the inputs: FakeTensor, SymInt for a varying int, floats unchanged."""

    fake_mode: Any
    fakes: list[Any]


def make_fake_inputs(values: Sequence[Any], dynamic_dims: Mapping[int, set[int]] | None = None) -> FakeInputs:
    """Fakes of a graph's inputs; ``dynamic_dims`` maps the index of an input to the dimensions that vary.

    The fakes of tensors that share a storage share it as well. The fake of a view whose storage no other input shares has
    the view's sizes and strides, at offset 0: for a slice of a data set, the capture must not depend on the data set's size
    or on the offset."""
    dynamic_dims = dynamic_dims or {}
    ints_vary = any(type(v) is int for v in values)
    with preserve_torch_state():
        mode, shape_env = compat.new_fake_mode(dynamic=bool(dynamic_dims) or ints_vary)
        shared = Counter(storage_key(v) for v in values if isinstance(v, torch.Tensor))
        fakes: list[Any] = []
        for index, value in enumerate(values):
            if isinstance(value, torch.Tensor):
                alone = shared[storage_key(value)] == 1
                fakes.append(_fake(mode, value, f"L[{index}]", dynamic_dims.get(index, set()), alone))
            elif type(value) is int:
                fakes.append(compat.symbolic_int(shape_env, value, f"L[{index}]"))
            else:
                fakes.append(value)
    return FakeInputs(mode, fakes)


def _fake(mode: Any, tensor: torch.Tensor, name: str, dims: set[int], alone: bool) -> Any:
    try:
        if alone and not tensor.requires_grad and type(tensor) is torch.Tensor and tensor.layout is torch.strided:
            if tensor._is_view() or tensor.storage_offset():
                tensor = torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(
                    tensor.untyped_storage(), 0, tensor.shape, tensor.stride()
                )
        return compat.fakify(mode, tensor, name, dims)
    except (NotImplementedError, RuntimeError, AssertionError, TypeError) as error:
        raise Unsupported(
            "MP902", f"Input {name} ({type(tensor).__name__}, {tensor.layout}) has no fake counterpart: {error}"
        ) from error
