"""The autograd function of a graph that AOTAutograd has compiled with its backward graph, without what is done at each call
for graphs that need it. Key function: `direct_function`.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

import torch

from magpy_core._compat.torch.eval_frame import never_intercept
from magpy_core._compat.torch.function_apply import applied_class

#: What AOTAutograd's metadata says of a graph whose inputs or results are changed at each call.
_CHANGES = (
    "num_unsafe_view_outputs", "num_graphsafe_rng_states", "is_rng_op_functionalized", "tokens", "num_backward_tokens",
)  # fmt: skip
_SAVED = "tensors_saved_for_backwards_with_vc_check_slice"  # the results of the forward graph that this slice selects
_UNCHECKED = "tensors_saved_for_backwards_no_vc_check_slice"
_SYMBOLS = "symints_saved_for_backwards_slice"
_OPAQUE = "opaque_objects_saved_for_backwards_slice"

#: The parameters of the function that prepares a backward pass, in versions that don't generate one for each graph.
_GENERAL = ("ctx_saved_tensors", "ctx_symints", "ctx_opaque_objects", "metadata", "maybe_subclass_metadata", "flat_args")

#: The attributes that the forward pass gives the node for its backward pass.
_KEPT = frozenset({"_tensors_no_vc_check", "symints", "opaque_objects"})
#: Objects of the program, such as streams, that the backward graph uses; torch 2.15 gives every node a dict for them.
_EXTERNAL = "_external_objects"

Apply = Callable[..., tuple[Any, ...]]


def direct_function(compiled: Callable[..., Any], metadata: Any) -> Apply | None:
    """A function that does the same as ``compiled``, the ``apply`` of the autograd function that AOTAutograd has made, with
    less work for each call; None if there is more to do for this graph, or if this version of torch makes it otherwise."""
    function: Any = getattr(compiled, "__self__", None)
    if not _is_usual(compiled, function) or any(getattr(metadata, name, True) for name in _CHANGES):
        return None
    slices: list[Any] = [getattr(metadata, name, None) for name in (_SAVED, _UNCHECKED, _SYMBOLS, _OPAQUE)]
    if not all(isinstance(found, slice) for found in slices):
        return None
    methods = {"forward": _forward(function, metadata, *slices)}
    saves_checked_only = getattr(metadata, "num_tensors_saved_with_no_vc_check", None) in (0, None)
    if saves_checked_only and (inputs := _inputs_of_backward(function)) is not None:
        methods["backward"] = _backward(function, inputs)
    name: str = function.__name__  # by which its nodes are known
    return _apply(type(function)(name, (function,), {key: staticmethod(method) for key, method in methods.items()}))


def graphs_of(compiled: Callable[..., Any]) -> tuple[Callable[[list[Any]], Any], Callable[[list[Any]], Any]]:
    """What the forward and the backward graph of a function that `direct_function` has accepted call. For such graphs,
    torch's wrappers around them do nothing."""
    function: Any = compiled.__self__  # type: ignore[attr-defined]
    forward, backward = (_unwrapped(graph) for graph in (function.compiled_fw, function.compiled_bw))
    return getattr(forward, "current_callable", forward), getattr(backward, "current_callable", backward)


def keeps_the_same(results: Any) -> bool:
    """Whether AOTAutograd's function, whose ``results`` these are, gives its node the attributes that ours gives it."""
    nodes = [result.grad_fn for result in results if isinstance(result, torch.Tensor) and result.grad_fn is not None]
    kept = [getattr(node, "__dict__", {}) for node in nodes]
    return bool(kept) and all(one.keys() - {_EXTERNAL} == _KEPT and not one.get(_EXTERNAL) for one in kept)


def _is_usual(compiled: Callable[..., Any], function: Any) -> bool:
    return (
        function is not None
        and applied_class(compiled) is function
        and callable(getattr(function, "compiled_fw", None))
        and getattr(function, "maybe_subclass_metadata", True) is None
    )


def _inputs_of_backward(function: Any) -> Callable[[Any, tuple[Any, ...]], list[Any]] | None:
    """AOTAutograd's way from the node and what its ``backward`` is given to the inputs of the backward graph."""
    if getattr(function, "boxed_grads_call", False) is True:  # it is given one list
        unpack = getattr(function, "_bw_prologue_fn", None)
        if not callable(unpack):
            return None
        return lambda ctx, given: unpack(ctx.saved_tensors, ctx.symints, ctx.opaque_objects, *given)
    from torch._functorch._aot_autograd import runtime_wrappers

    general: Any = getattr(runtime_wrappers, "_backward_prologue_functional", None)  # in torch 2.11, for all graphs
    code = getattr(general, "__code__", None)
    if code is None or code.co_varnames[: code.co_argcount + 1] != _GENERAL:
        return None
    metadata = function.metadata
    return lambda ctx, given: general(ctx.saved_tensors, ctx.symints, ctx.opaque_objects, metadata, None, *given)


def _apply(function: Any) -> Apply:
    """``function.apply``, without what it does in Python, up to torch 2.13, for ``setup_context`` and ``torch.func``."""
    apply: Apply = super(torch.autograd.Function, function).apply
    return apply


def _unwrapped(graph: Any) -> Callable[[list[Any]], Any]:
    """What ``graph`` calls, within wrappers that time and record the call, or keep ``torch.compile`` from it."""
    while hasattr(graph, "_torchdynamo_orig_callable"):
        graph = graph._torchdynamo_orig_callable
    if isinstance(graph, FunctionType):  # which may have the attributes of what it wraps
        return graph
    run: Callable[[list[Any]], Any] = getattr(graph, "current_callable", None) or graph
    return run


def _forward(function: Any, metadata: Any, saved: slice, unchecked: slice, symbols: slice, opaque: slice) -> Apply:
    """Runs the forward graph, and saves what AOTAutograd saves."""
    graph, count = function.compiled_fw, metadata.num_forward_returns
    without_gradient = [i for i, info in enumerate(metadata.output_info[:count]) if not info.requires_grad]

    def forward(ctx: Any, *inputs: Any) -> tuple[Any, ...]:
        results = tuple(_unwrapped(graph)(list(inputs)))
        # A saved view would keep the graph of its base.
        ctx.save_for_backward(*[value.detach() if value._is_view() else value for value in results[saved]])
        ctx._tensors_no_vc_check = [value.detach() if value._is_view() else value for value in results[unchecked]]
        ctx.symints, ctx.opaque_objects = results[symbols], results[opaque]
        ctx._materialize_non_diff_grads = False
        if without_gradient:
            ctx.mark_non_differentiable(*[results[i] for i in without_gradient if isinstance(results[i], torch.Tensor)])
        return results[:count]

    return never_intercept(forward)


def _backward(function: Any, inputs_of: Callable[[Any, tuple[Any, ...]], list[Any]]) -> Apply:
    """Runs the backward graph; differentiated again, by AOTAutograd's way, which refuses it."""
    is_recorded = torch.autograd.profiler
    is_first = True

    def backward(ctx: Any, *given: Any) -> tuple[Any, ...]:
        nonlocal is_first
        if is_first or torch.is_grad_enabled() or is_recorded._is_profiler_enabled:
            is_first = False
            gradients: tuple[Any, ...] = function.backward(ctx, *given)
            return gradients
        inputs = inputs_of(ctx, given)
        ctx.maybe_clear_saved_tensors()
        context = _context()
        graph = _unwrapped(function.compiled_bw)
        return tuple(graph(inputs) if context is None else context.run(graph, inputs))

    return never_intercept(backward)


def _context() -> Any:
    """The context variables of the thread that started this backward pass."""
    return torch._C._get_obj_in_tls("context") if torch._C._is_key_in_tls("context") else None
