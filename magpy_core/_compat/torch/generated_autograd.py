"""The autograd function of a graph that AOTAutograd has compiled with its backward graph, made anew of both graphs' code.

AOTAutograd's own function lives in a closure that only its tracer makes. For a usual graph (no subclasses, no results that
are views, no state of random generators), little of what it knows matters at run time: this is kept as data.
Key type: Gradients. Key functions: gradients_of, autograd_function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from magpy_core._compat.torch.eval_frame import never_intercept

Call = Callable[[list[Any]], Any]
Format = tuple[Any, ...]  # of a gradient: the name of a memory format, or sizes and strides

_NAME = "CompiledFunction"  # by which the nodes of compiled graphs are known
_FORMATS = {str(one): one for one in (torch.contiguous_format, torch.channels_last, torch.channels_last_3d)}
_TWICE = "torch.compile with aot_autograd does not currently support double backward"  # torch's own words
_DETERMINISTIC = (
    "This compiled backward function is being run with torch.use_deterministic_algorithms(True), but it was previously "
    "generated during the forward function while torch.use_deterministic_algorithms(False) was set."
)


@dataclass(frozen=True)
class Gradients:
    """``results``: how many results the call has; the forward graph has more. ``without``: those that have no gradient.
    ``saved``, ``sizes``: the first and last + 1 of the forward graph's results that the backward graph takes, tensors and
    sizes that vary. ``given``: the results whose gradients it takes as well, and the format that it takes them in.
    ``deterministic``: whether the backward graph may run where deterministic algorithms are wanted."""

    results: int
    without: tuple[int, ...]
    saved: tuple[int | None, int | None]
    sizes: tuple[int | None, int | None]
    given: tuple[tuple[int, Format], ...]
    deterministic: bool


def gradients_of(metadata: Any) -> Gradients | None:
    """What AOTAutograd's ``metadata`` of a graph for which `direct_autograd.direct_function` has made a function says; None
    if there is more to it."""
    try:
        return _known(metadata)
    except (AttributeError, TypeError, KeyError, ValueError):  # another version of torch
        return None


def _known(metadata: Any) -> Gradients | None:
    outputs = metadata.output_info
    if len(outputs) != metadata.num_forward_returns or metadata.indices_of_inputs_that_requires_grad_with_mutations_in_bw:
        return None
    opaque = metadata.opaque_objects_saved_for_backwards_slice
    if getattr(metadata, "num_tensors_saved_with_no_vc_check", 0) or opaque.start != opaque.stop:
        return None
    saved, sizes = metadata.tensors_saved_for_backwards_with_vc_check_slice, metadata.symints_saved_for_backwards_slice
    if any(part.step is not None for part in (saved, sizes)) or any(not _has_own_memory(info) for info in outputs):
        return None
    surviving = [i for i, info in enumerate(outputs) if _has_gradient(info)]
    formats = [_format(meta) for meta in metadata.subclass_tangent_meta]
    if len(formats) != len(surviving) or metadata.num_intermediate_bases:
        return None
    without = tuple(i for i, info in enumerate(outputs) if not info.requires_grad)
    given = tuple(zip(surviving, formats, strict=True))
    return Gradients(
        len(outputs),
        without,
        (saved.start, saved.stop),
        (sizes.start, sizes.stop),
        given,
        metadata.deterministic is not False,
    )


def _has_own_memory(info: Any) -> bool:
    return info.output_type.name in ("non_alias", "custom_function_view")  # it is not rebuilt as a view


def _has_gradient(info: Any) -> bool:
    return issubclass(info.raw_type, torch.Tensor) and bool(getattr(info, "requires_grad_for_backward", info.requires_grad))


def _format(meta: Any) -> Format:
    """Raises ValueError for a gradient that is no plain tensor."""
    if type(meta).__name__ != "PlainTensorMeta":
        raise ValueError(meta)
    wanted = meta.memory_format
    if wanted.memory_format is not None:
        return (str(wanted.memory_format),)
    sizes, strides = tuple(wanted.size), tuple(wanted.stride)
    if any(type(n) is not int for n in (*sizes, *strides)):
        raise ValueError(meta)
    return sizes, strides


# -- the function --------------------------------------------------------------------------------------------------------


def autograd_function(forward_graph: Call, backward_graph: Call, known: Gradients) -> Call:
    """A function of a list of inputs that runs ``forward_graph``, and ``backward_graph`` in a backward pass."""

    def forward(ctx: Any, *inputs: Any) -> tuple[Any, ...]:
        results = tuple(forward_graph([*inputs]))
        # A saved view would keep the graph of its base.
        ctx.save_for_backward(*[value.detach() if value._is_view() else value for value in results[slice(*known.saved)]])
        ctx.sizes = results[slice(*known.sizes)]
        ctx._materialize_non_diff_grads = False
        if known.without:
            ctx.mark_non_differentiable(*[results[i] for i in known.without if isinstance(results[i], torch.Tensor)])
        return results[: known.results]

    def backward(ctx: Any, *given: Any) -> tuple[Any, ...]:
        if not known.deterministic and torch.are_deterministic_algorithms_enabled():
            raise RuntimeError(_DETERMINISTIC)
        inputs = [*ctx.sizes, *ctx.saved_tensors, *[_formatted(given[i], format) for i, format in known.given]]
        ctx.maybe_clear_saved_tensors()
        if torch.is_grad_enabled():
            gradients: tuple[Any, ...] = _once_only(backward_graph, inputs)
            return gradients
        return tuple(backward_graph(inputs))

    methods = {"forward": never_intercept(forward), "backward": never_intercept(backward)}
    function: Any = type(_NAME, (torch.autograd.Function,), {key: staticmethod(method) for key, method in methods.items()})
    apply = super(torch.autograd.Function, function).apply  # without what it does for transforms of torch.func

    def call(inputs: list[Any]) -> Any:
        if torch.is_grad_enabled():
            return apply(*inputs)
        with torch.enable_grad():
            return apply(*inputs)

    return call


def _formatted(gradient: Any, wanted: Format) -> Any:
    if not isinstance(gradient, torch.Tensor):
        return gradient
    if len(wanted) == 1:
        memory_format = _FORMATS[wanted[0]]
        if gradient.is_contiguous(memory_format=memory_format):
            return gradient
        return gradient.contiguous(memory_format=memory_format)
    sizes, strides = wanted
    if gradient.shape == sizes and gradient.stride() == strides:
        return gradient
    copy = torch.empty_strided(sizes, strides, dtype=gradient.dtype, device=gradient.device)
    return copy.copy_(gradient)


def _once_only(graph: Call, inputs: Sequence[Any]) -> Any:
    """The results of a backward graph whose own backward pass, if there is one, raises."""

    class CompiledFunctionBackward(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *values: Any) -> Any:
            return tuple(graph([*values[1:]]))

        @staticmethod
        def backward(ctx: Any, *given: Any) -> Any:
            raise RuntimeError(_TWICE)

    return CompiledFunctionBackward.apply(torch.empty(0, requires_grad=True), *inputs)  # type: ignore[no-untyped-call]
