"""oneDNN's recurrent layers in a graph without autograd.

The kernel keeps what its backward pass needs, in a workspace of a size of its own, only if gradients are enabled, and
torch's shape function gives the workspace no elements. ``magpy::rnn_layer`` is the same kernel for a call with gradients
disabled, and its workspace has the size that the kernel gave when asked once. Key name: RNN_LAYERS, for ``make_fx``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

_LAYER: Any = torch.ops.aten.mkldnn_rnn_layer.default
_BACKWARD: Any = torch.ops.aten.mkldnn_rnn_layer_backward.default
_TRAINS = [argument.name for argument in _BACKWARD._schema.arguments].index("train")
_LIBRARY = torch.library.Library("magpy", "FRAGMENT")
_LIBRARY.define(str(_LAYER._schema).replace("aten::mkldnn_rnn_layer(", "rnn_layer(").replace(") ->", ", int workspace) ->"))
_LIBRARY.define(str(_BACKWARD._schema).replace("aten::mkldnn_rnn_layer_backward(", "rnn_layer_backward("))


def _contiguous(args: Sequence[Any]) -> list[Any]:
    """The kernels assume it. Inductor may choose other strides for a value that it computes."""
    return [arg.contiguous() if isinstance(arg, torch.Tensor) else arg for arg in args]


def _layer(*args: Any) -> Any:
    with torch.enable_grad():
        return _LAYER(*_contiguous(args[:-1]))


def _shapes_of_layer(*args: Any) -> Any:
    output, hidden, cell, _ = _LAYER(*args[:-1])
    return output, hidden, cell, output.new_empty(args[-1], dtype=torch.uint8)


def _backward(*args: Any) -> Any:
    return _BACKWARD(*_contiguous(args[:_TRAINS]), True, *_contiguous(args[_TRAINS + 1 :]))


def _shapes_of_backward(*args: Any) -> Any:
    # torch's own function returns one tensor for both gradients of biases, and of the layer's type: they are always float32
    return tuple(torch.empty_like(arg, dtype=torch.float32, memory_format=torch.contiguous_format) for arg in args[:7])


_LIBRARY.impl("rnn_layer", _layer, "CPU")
_LIBRARY.impl("rnn_layer_backward", _backward, "CPU")
torch.library.register_fake("magpy::rnn_layer", _shapes_of_layer, lib=_LIBRARY)
torch.library.register_fake("magpy::rnn_layer_backward", _shapes_of_backward, lib=_LIBRARY)


def _with_workspace(*args: Any) -> Any:
    *others, _ = args  # whether it trains, which AOTAutograd's decomposition of an LSTM leaves out
    shapes = tuple(tuple(arg.shape) if isinstance(arg, torch.Tensor) else None for arg in others)
    if not torch.is_grad_enabled() or not all(type(size) is int for shape in shapes for size in shape or ()):
        return NotImplemented
    kinds = tuple(arg.dtype if isinstance(arg, torch.Tensor) else arg for arg in others)
    plain = tuple(tuple(kind) if isinstance(kind, list) else kind for kind in kinds)
    return torch.ops.magpy.rnn_layer(*others, True, _workspace_size(shapes, plain))


@functools.cache
def _workspace_size(shapes: tuple[Any, ...], kinds: tuple[Any, ...]) -> int:
    with _disable_current_modes(), torch.enable_grad():
        args = [kind if shape is None else torch.zeros(shape, dtype=kind) for shape, kind in zip(shapes, kinds, strict=True)]
        return int(_LAYER(*args, True)[3].numel())


#: Decompositions of layers and their backward passes in one graph.
RNN_LAYERS: dict[Any, Callable[..., Any]] = {_LAYER: _with_workspace, _BACKWARD: torch.ops.magpy.rnn_layer_backward.default}
