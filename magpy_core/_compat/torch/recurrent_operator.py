"""Recurrent layers as one operator with a backward pass, so that a graph fits all lengths and batches.

torch's decompositions take a layer apart: one group of operations for each step, so that each length needs its own code.
``magpy::recurrent_forward`` calls the layer as eager mode does. In training it runs under autograd, on copies, which nothing
else can write, and its history is an attribute of one of its results: the backward operator continues there, with the
formulas of eager mode. If that tensor has been replaced by a copy on the way (hooks for saved tensors), the layer is
computed again.

That is as fast as eager mode. For one length that is not long, compiled code is faster, so that ``magpy::recurrent`` leaves
such a layer to the compiler. Key names: `recurrent`, which is what a graph calls, and `KINDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch._C import DispatchKey

_Tensor = torch.Tensor
#: The layers, by the names of the functions that compute them.
KINDS: dict[str, Callable[..., Any]] = {
    "lstm": torch.lstm,
    "gru": torch.gru,
    "rnn_tanh": torch.rnn_tanh,
    "rnn_relu": torch.rnn_relu,
}
_LAYER = "str kind, Tensor input, Tensor? batch_sizes, Tensor[] states, Tensor[] weights, bool biases, bool both"
_LIBRARY = torch.library.Library("magpy", "FRAGMENT")
_LIBRARY.define(f"recurrent({_LAYER}, int steps) -> (Tensor, Tensor, Tensor)")
_LIBRARY.define(f"recurrent_forward({_LAYER}, bool[] learned) -> (Tensor, Tensor, Tensor, Tensor)")
_LIBRARY.define(
    f"recurrent_backward(Tensor history, Tensor? of_output, Tensor? of_hidden, Tensor? of_cell, {_LAYER}, bool[] learned)"
    " -> Tensor[]"
)


@dataclass(frozen=True)
class Layer:
    """The arguments of a call. ``input``: steps x batch x features, or packed values x features with ``batch_sizes``;
    ``states``: one or two, of layers and directions x batch x features; ``both``: it runs in both directions."""

    kind: str
    input: _Tensor
    batch_sizes: _Tensor | None
    states: Sequence[_Tensor]
    weights: Sequence[_Tensor]
    biases: bool
    both: bool

    @property
    def layers(self) -> int:
        """Their number."""
        return len(self.states[0]) // (1 + self.both)

    @property
    def tensors(self) -> list[_Tensor]:
        """What can require a gradient."""
        return [self.input, *self.states, *self.weights]

    @property
    def others(self) -> tuple[Any, ...]:
        return self.kind, self.batch_sizes, len(self.states), self.biases, self.both

    def run(self, tensors: Sequence[_Tensor]) -> tuple[_Tensor, ...]:
        """Output, hidden state and, of an LSTM, cell state, computed from ``tensors`` in place of its own."""
        given, states, weights = tensors[0], tensors[1 : 1 + len(self.states)], tensors[1 + len(self.states) :]
        state = tuple(states) if self.kind == "lstm" else states[0]
        # neither dropout, which draws nothing with the rate 0, nor batches first: the graph has both
        options = (self.biases, self.layers, 0.0, True, self.both)
        run = KINDS[self.kind]
        with torch._C.DisableTorchFunction():
            if self.batch_sizes is None:
                return tuple(run(given, state, list(weights), *options, False))
            return tuple(run(given, self.batch_sizes, state, list(weights), *options))


_BELOW = (DispatchKey.AutogradFunctionality, DispatchKey.AutogradOther, DispatchKey.ADInplaceOrView)


@contextmanager
def _autograd() -> Iterator[None]:
    """Autograd for what a kernel runs: whoever called its operator has disabled it, and done its own."""
    excluded = torch._C._dispatch_tls_local_exclude_set()
    for key in _BELOW:
        excluded = excluded.remove(key)
    with torch._C._ForceDispatchKeyGuard(torch._C._dispatch_tls_local_include_set(), excluded), torch.enable_grad():
        yield


class _History:
    """What a forward pass leaves for its backward pass: leaves for the tensors that are ``learned``, and its results."""

    def __init__(self, layer: Layer, learned: Sequence[bool]) -> None:
        with _autograd():
            copies = [tensor.detach().clone() for tensor in layer.tensors]
            self.leaves = [copy.requires_grad_() for copy, is_learned in zip(copies, learned, strict=True) if is_learned]
            self.results = layer.run(copies)

    def gradients(self, given: Sequence[_Tensor | None]) -> list[_Tensor]:
        """The leaves', from those of the results."""
        roots = [(result, gradient) for result, gradient in zip(self.results, given, strict=False) if gradient is not None]
        results, gradients = zip(*roots, strict=True)
        with _autograd():  # a backward pass that keeps the graph may run again
            found = torch.autograd.grad(results, self.leaves, gradients, retain_graph=True, materialize_grads=True)
        return [gradient.contiguous() for gradient in found]


def _forward(*args: Any) -> tuple[_Tensor, ...]:
    *given, learned = args
    layer = Layer(*given)
    handle = layer.input.new_empty(1, dtype=torch.uint16)
    if any(learned):
        history = _History(layer, learned)
        results = [result.detach().clone(memory_format=torch.contiguous_format) for result in history.results]
        vars(handle)["history"] = history
    else:
        with torch.no_grad():
            results = _own(layer.run(layer.tensors), layer.tensors)
    return (*results, *[layer.input.new_empty(0)] * (3 - len(results)), handle)


def _own(results: Sequence[_Tensor], given: Sequence[_Tensor]) -> list[_Tensor]:
    """An operator's results share no memory with its arguments or each other."""
    known, own = {tensor.untyped_storage()._cdata for tensor in given}, list[_Tensor]()
    for result in results:
        place = result.untyped_storage()._cdata
        own.append(result.clone(memory_format=torch.contiguous_format) if place in known else result.contiguous())
        known.add(place)
    return own


def _backward(history: _Tensor, *args: Any) -> list[_Tensor]:
    (*gradients,), given, learned = args[:3], args[3:-1], args[-1]
    kept = vars(history).get("history")
    if kept is None:
        kept = _History(Layer(*given), learned)
    return kept.gradients(gradients)


def _shapes_of_forward(*args: Any) -> tuple[_Tensor, ...]:
    layer = Layer(*args[:-1])
    state = layer.states[0]
    output = layer.input.new_empty((*layer.input.shape[:-1], state.shape[-1] * (1 + layer.both)))
    results = [output, *(layer.input.new_empty(one.shape) for one in layer.states)]
    missing = [layer.input.new_empty(0)] * (3 - len(results))
    return (*results, *missing, layer.input.new_empty(1, dtype=torch.uint16))


def _shapes_of_backward(history: _Tensor, *args: Any) -> list[_Tensor]:
    layer, learned = Layer(*args[3:-1]), args[-1]
    return [tensor.new_empty(tensor.shape) for tensor, wanted in zip(layer.tensors, learned, strict=True) if wanted]


class _Differentiable(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, others: tuple[Any, ...], *tensors: _Tensor) -> Any:
        ctx.learned = list(ctx.needs_input_grad[1:])
        ctx.others = others
        ctx.set_materialize_grads(False)
        output, hidden, cell, history = torch.ops.magpy.recurrent_forward(*_arguments(others, tensors), ctx.learned)
        ctx.save_for_backward(history, *tensors)
        return output, hidden, cell

    @staticmethod
    def backward(ctx: Any, *gradients: _Tensor | None) -> Any:
        if torch.is_grad_enabled():  # `create_graph`
            raise RuntimeError("The gradient of a recurrent layer that is one operator can't be differentiated.")
        history, *tensors = ctx.saved_tensors
        given = (*gradients[:2], gradients[2] if ctx.others[0] == "lstm" else None)
        if all(gradient is None for gradient in given):
            return (None, *(None for _ in tensors))
        found = iter(torch.ops.magpy.recurrent_backward(history, *given, *_arguments(ctx.others, tensors), ctx.learned))
        return (None, *(next(found) if wanted else None for wanted in ctx.learned))


def _arguments(others: tuple[Any, ...], tensors: Sequence[_Tensor]) -> tuple[Any, ...]:
    """Of the operators."""
    kind, batch_sizes, states, biases, both = others
    return kind, tensors[0], batch_sizes, list(tensors[1 : 1 + states]), list(tensors[1 + states :]), biases, both


def _recurrent(*args: Any) -> Any:
    *given, steps = args
    layer = Layer(*given)
    if _is_taken_apart(layer, steps):
        results = layer.run(layer.tensors)
        return (*results, *[layer.input.new_empty(0)] * (3 - len(results)))
    return one_operator(layer)


def _is_taken_apart(layer: Layer, most: int) -> bool:
    """Whether the code for one length is better: that of a few steps, or of an LSTM of oneDNN, which is an operator."""
    length = layer.input.shape[0]
    if layer.batch_sizes is not None or type(length) is not int:
        return False
    if layer.kind == "lstm":
        return type(layer.input.shape[1]) is int
    return length * len(layer.states[0]) <= most


def one_operator(layer: Layer) -> Any:
    """Output, hidden state and cell state."""
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in layer.tensors):
        return _Differentiable.apply(layer.others, *layer.tensors)  # type: ignore[no-untyped-call]
    given = _arguments(layer.others, layer.tensors)
    return torch.ops.magpy.recurrent_forward(*given, [False] * len(layer.tensors))[:3]


def is_of_layer(node: Any) -> bool:
    """Whether a node of autograd's graph is a layer's, which saves tensors as those of eager mode do."""
    return getattr(type(node), "_forward_cls", None) is _Differentiable


_LIBRARY.impl("recurrent", _recurrent, "CompositeImplicitAutograd")
_LIBRARY.impl("recurrent_forward", _forward, "CompositeExplicitAutograd")
_LIBRARY.impl("recurrent_backward", _backward, "CompositeExplicitAutograd")
torch.library.register_fake("magpy::recurrent_forward", _shapes_of_forward, lib=_LIBRARY)
torch.library.register_fake("magpy::recurrent_backward", _shapes_of_backward, lib=_LIBRARY)

#: (kind, input, batch sizes or None, states, weights, whether there are biases, whether it runs in both directions, how many
#: steps of all layers and directions are taken apart at most) -> output, hidden state, cell state (without elements if there
#: is none). Steps come first.
recurrent: Any = torch.ops.magpy.recurrent.default
