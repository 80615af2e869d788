"""oneDNN's recurrent layers in a graph without autograd.

The kernel keeps what its backward pass needs, in a workspace of a size of its own, only if gradients are enabled, and
torch's shape function gives the workspace no elements. ``magpy::rnn_layer`` is the same kernel for a call with gradients
disabled, and its workspace has the size that the kernel gave when asked once. Key name: RNN_LAYERS, for ``make_fx``.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

_ATEN: Any = torch.ops.aten.mkldnn_rnn_layer.default
_LIBRARY = torch.library.Library("magpy", "FRAGMENT")
_LIBRARY.define(str(_ATEN._schema).replace("aten::mkldnn_rnn_layer(", "rnn_layer(").replace(") ->", ", int workspace) ->"))


def _layer(*args: Any) -> Any:
    with torch.enable_grad():
        return _ATEN(*args[:-1])


def _shapes(*args: Any) -> Any:
    output, hidden, cell, _ = _ATEN(*args[:-1])
    return output, hidden, cell, output.new_empty(args[-1], dtype=torch.uint8)


_LIBRARY.impl("rnn_layer", _layer, "CPU")
torch.library.register_fake("magpy::rnn_layer", _shapes, lib=_LIBRARY)


def _with_workspace(*args: Any) -> Any:
    *others, trains = args
    shapes = tuple(tuple(arg.shape) if isinstance(arg, torch.Tensor) else None for arg in others)
    if not trains or not all(type(size) is int for shape in shapes for size in shape or ()):
        return NotImplemented
    kinds = tuple(arg.dtype if isinstance(arg, torch.Tensor) else arg for arg in others)
    plain = tuple(tuple(kind) if isinstance(kind, list) else kind for kind in kinds)
    return torch.ops.magpy.rnn_layer(*args, _workspace_size(shapes, plain))


@functools.cache
def _workspace_size(shapes: tuple[Any, ...], kinds: tuple[Any, ...]) -> int:
    with _disable_current_modes(), torch.enable_grad():
        args = [kind if shape is None else torch.zeros(shape, dtype=kind) for shape, kind in zip(shapes, kinds, strict=True)]
        return int(_ATEN(*args, True)[3].numel())


#: Decompositions of the layers whose backward pass is in the same graph.
RNN_LAYERS = {_ATEN: _with_workspace}
