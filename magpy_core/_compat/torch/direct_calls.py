"""Compiled graphs called without AOTAutograd's wrapper, where it would do nothing but switch the grad mode.

The wrapper and that of Inductor around the generated function take as long as two or three small kernels.
Key functions: `direct_calls`, `generated_call`. Key type: GeneratedCall.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch

from magpy_core._compat.torch.direct_autograd import direct_function, graphs_of, keeps_the_same
from magpy_core._compat.torch.generated_autograd import Gradients, autograd_function, gradients_of
from magpy_core._compat.torch.tensor_guards import storage_key

_CREATES = "_create_runtime_wrapper"
#: What AOTAutograd's metadata says of a graph after whose call something is left to do; marks of dynamic dimensions, which
#: only TorchDynamo needs, are left out anyway (`inductor._unmarked_outputs`).
_LEFT_TO_DO = ("num_mutated_inp_runtime_indices", "num_intermediate_bases")
#: The inputs that the graph itself writes, whose version counters the wrapper increments before the call.
_WRITTEN = "mutated_graph_handled_indices_seen_by_autograd"
_GENERATED = "magpy_generated_call"


class GeneratedCall(NamedTuple):
    """``run``: the generated function, which takes its inputs as a list. ``written``: the positions of the inputs that it
    writes. ``returned``: those of results that are inputs, with these; ``views``: those of results that are views of inputs
    that are only read, with these. ``backward``: the generated function of the backward graph, if called under autograd."""

    run: Callable[[list[Any]], Any]
    written: tuple[int, ...] = ()
    backward: tuple[Callable[[list[Any]], Any], Gradients] | None = None
    returned: tuple[tuple[int, int], ...] = ()
    views: tuple[tuple[int, int], ...] = ()

    @property
    def called(self) -> Callable[[list[Any]], Any]:
        """A function that calls it in any grad mode, and counts the writes."""
        return self._without_autograd() if self.backward is None else autograd_function(self.run, *self.backward)

    def _without_autograd(self) -> Callable[[list[Any]], Any]:
        run, written, views = _with_inputs(self.run, self.returned), self.written, self.views

        def call(inputs: list[Any]) -> Any:
            if written:
                torch.autograd.graph.increment_version([inputs[i] for i in written])
            if not torch.is_grad_enabled():
                return run(inputs)
            torch._C._set_grad_enabled(False)
            try:
                return run(inputs)
            finally:
                torch._C._set_grad_enabled(True)

        def call_with_views(inputs: list[Any]) -> Any:
            bases = [inputs[j] for _, j in views]
            results = [*call(inputs)]  # which empties the list
            for (i, _), base in zip(views, bases, strict=True):
                results[i] = _view_like(base, results[i])
            return results

        return call_with_views if views else call


def _view_like(base: torch.Tensor, result: torch.Tensor) -> torch.Tensor:
    """``result``, which generated code has made in the memory of ``base``, as a view of it that autograd knows, as
    AOTAutograd's wrapper makes it. Raises RuntimeError if it is in other memory, or has elements of another size."""
    if storage_key(base) != storage_key(result):
        raise RuntimeError("a view of an input is in other memory")
    size, stride, offset = result.size(), result.stride(), result.storage_offset()
    if result.is_complex() and not base.is_complex():
        return torch.view_as_complex(base.as_strided((*size, 2), (*(2 * one for one in stride), 1), 2 * offset))
    if base.is_complex() and not result.is_complex():
        base = torch.view_as_real(base)
    if base.itemsize != result.itemsize:
        raise RuntimeError("a view has elements of another size")
    view = base.as_strided(size, stride, offset)
    return view if view.dtype == result.dtype else view.view(result.dtype)


def _with_inputs(run: Callable[[list[Any]], Any], returned: tuple[tuple[int, int], ...]) -> Callable[[list[Any]], Any]:
    """``run``, with the inputs themselves as results where they are ``returned``."""
    if not returned:
        return run

    def call(inputs: list[Any]) -> Any:
        given = [(i, inputs[j]) for i, j in returned]
        results = [*run(inputs)]  # which empties the list
        for i, tensor in given:
            results[i] = tensor
        return results

    return call


def generated_call(compiled: Any) -> GeneratedCall | None:
    """What a compiled graph, as it is called, consists of; None if there is more to it."""
    found: GeneratedCall | None = getattr(compiled, _GENERATED, None)
    return found


@contextmanager
def direct_calls() -> Iterator[None]:
    """Graphs that are compiled, or loaded, in the block are called directly from their second call on."""
    from torch._functorch._aot_autograd import runtime_wrappers

    original = getattr(runtime_wrappers, _CREATES, None)
    if original is None:
        yield
        return

    def create(compiled: Callable[..., Any], **details: Any) -> Callable[..., Any]:
        wrapped: Callable[..., Any] = original(compiled, **details)
        if not _does_nothing(details):
            return wrapped
        written = getattr(details["runtime_metadata"], _WRITTEN, None)
        aliases = _aliases(details["runtime_metadata"])
        if aliases is None:
            return wrapped
        if details.get("trace_joint") is False and written is not None:
            return _direct(compiled, wrapped, tuple(written) if details.get("keep_input_mutations") else (), *aliases)
        is_joint = details.get("trace_joint") is True and details.get("indices_of_inps_to_detach") == []
        if is_joint and not written and not any(aliases):
            apply = direct_function(compiled, details["runtime_metadata"])
            if apply is None:
                return wrapped
            call = _direct_with_gradients(apply, wrapped)
            if (gradients := gradients_of(details["runtime_metadata"])) is not None:
                forward, backward = graphs_of(compiled)
                setattr(call, _GENERATED, GeneratedCall(forward, (), (backward, gradients)))
            return call
        return wrapped

    setattr(runtime_wrappers, _CREATES, create)
    try:
        yield
    finally:
        setattr(runtime_wrappers, _CREATES, original)


def _does_nothing(details: dict[str, Any]) -> bool:
    """Whether the wrapper for these ``details`` only calls the graph, with or without gradients."""
    if details.get("disable_amp") is not False:
        return False
    metadata = details.get("runtime_metadata")
    known = vars(metadata) if metadata is not None else {}
    facts = [getattr(metadata, name, True) for name in _LEFT_TO_DO]
    return not any(facts) and known.get("grad_enabled_mutation", True) is None


def _aliases(metadata: Any) -> tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]] | None:
    """The results that are inputs, with these, and those that are views of inputs that are only read; None if one is another
    alias, which the wrapper makes."""
    aliased = getattr(metadata, "num_outputs_aliased", None)
    results = getattr(metadata, "output_info", ()) if aliased else ()
    returned = tuple((i, info.base_idx) for i, info in enumerate(results) if info.output_type.name == "is_input")
    views = tuple(
        (i, info.base_idx)
        for i, info in enumerate(results)
        if info.output_type.name == "alias_of_input"
        and not info.requires_grad
        and _is_only_read(metadata.input_info[info.base_idx])
    )
    return (returned, views) if len(returned) + len(views) == aliased else None


def _is_only_read(given: Any) -> bool:
    """Whether an input has no history and is not written: a view of one that is written may be made of the value that it
    gets, which is in other memory, with other strides."""
    return not (given.requires_grad or given.mutates_data or given.mutates_metadata)


def _direct(
    compiled: Callable[..., Any],
    wrapped: Callable[..., Any],
    written: tuple[int, ...],
    returned: tuple[tuple[int, int], ...],
    views: tuple[tuple[int, int], ...],
) -> Callable[..., Any]:
    """``compiled``, which ``wrapped`` calls. The first call goes through the wrapper, which checks custom operators then."""
    is_first = True
    is_recorded = torch.autograd.profiler
    inner = getattr(compiled, "current_callable", None)  # of Inductor's wrapper, which times and records the call
    generated = GeneratedCall(inner or compiled, written, None, returned, views)
    direct = generated.called

    def call(inputs: list[Any]) -> Any:
        nonlocal is_first
        if is_first or is_recorded._is_profiler_enabled:
            is_first = False
            return wrapped(inputs)
        return direct(inputs)

    call.__dict__.update(vars(wrapped))  # marks, such as that it takes a list
    if inner is not None:
        setattr(call, _GENERATED, generated)
    return call


def _direct_with_gradients(apply: Callable[..., Any], wrapped: Callable[..., Any]) -> Callable[..., Any]:
    """``apply``, instead of the autograd function that ``wrapped`` applies. The first call, through the wrapper, shows
    whether an input is a tensor left over from a transform of ``torch.func`` (then all later ones are, too), and what
    the backward pass needs in this version of torch."""
    is_first, is_usual = True, False
    is_recorded, transforms = torch.autograd.profiler, torch._C._are_functorch_transforms_active

    def call(inputs: list[Any]) -> Any:
        nonlocal is_first, is_usual
        if is_first:
            is_first = False
            unwrap = torch._C._functorch.unwrap_if_dead
            none_is_left_over = all(unwrap(value) is value for value in inputs if isinstance(value, torch.Tensor))
            results = wrapped(inputs)
            is_usual = none_is_left_over and keeps_the_same(results)
            return results
        if is_usual and torch.is_grad_enabled() and not is_recorded._is_profiler_enabled and not transforms():
            return apply(*inputs)
        return wrapped(inputs)

    call.__dict__.update(vars(wrapped))
    return call
