"""Graphs with a backward pass inside, for compilers that support autograd only around a graph.

Such a graph is run once on fakes under autograd and traced into a graph of ATen operations, forward and backward, without
autograd: the compiler sees an inference graph, which is called with gradients disabled. In eager mode, the backward pass has
freed the history of a result that requires a gradient; the result of the compiled graph raises the same error when it is
differentiated. A result with any other history is refused.

Key functions: without_autograd, call_without_autograd.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.fx

from magpy_core._compat.torch.autograd_nodes import is_freed, is_leaf_node, reached_nodes
from magpy_core._compat.torch.operators_trace import after, trace_operators
from magpy_core._compat.torch.torch_state import no_autograd
from magpy_core.backends.calling import Boxed, Direct
from magpy_core.backends.held_writes import hold_writes
from magpy_core.backends.recomputation import Parts, recompute
from magpy_core.findings import Unsupported
from magpy_core.opgraph.functions import IS_BACKWARD, operator_name


@dataclass
class Differentiated:
    """``freed``: positions of outputs whose history a backward pass in the graph has freed."""

    graph: torch.fx.GraphModule
    fakes: list[Any]
    freed: list[int]


def without_autograd(gm: torch.fx.GraphModule, fakes: Sequence[Any], mode: Any) -> Differentiated | None:
    """``gm`` without autograd; None if it runs no backward pass, or if AOTAutograd has to trace it because its results can
    be differentiated, which it can do if the program has called ``torch.autograd.grad`` itself, and each of these results
    depends on an input that requires a gradient. Raises Unsupported."""
    passes = [node for node in gm.graph.nodes if node.target is torch.autograd.grad]
    if not passes:
        return None
    try:
        return differentiate(gm, fakes, mode)
    except Unsupported as error:
        if isinstance(error, _OwnHistory) or any(IS_BACKWARD in node.meta for node in passes):
            raise
        return None


def differentiate(gm: torch.fx.GraphModule, fakes: Sequence[Any], mode: Any) -> Differentiated:
    """``gm`` without autograd. Raises Unsupported."""
    fakes = [
        fake.detach() if _has_history_outside(fake) and _is_only_detached(node) else fake
        for node, fake in zip(gm.graph.find_nodes(op="placeholder"), fakes, strict=True)
    ]
    if any(map(_has_history_outside, fakes)):
        raise Unsupported(
            "MP916", "A backward pass inside the region may continue through a tensor that its graph doesn't contain."
        )
    inputs = [_leaf(fake) for fake in fakes]
    outputs: list[Any] = []
    _order_passes(gm)
    parts = Parts(gm)

    def run(*values: Any) -> Any:
        outputs[:] = parts.run(*values)
        return tuple(outputs)

    graph = trace_operators(run, inputs, mode)
    recompute(graph, parts)
    hold_writes(graph, gm, fakes)
    for fake, used in zip(fakes, inputs, strict=True):
        if isinstance(fake, torch.Tensor) and (not used.is_leaf or used.requires_grad != fake.requires_grad):
            raise Unsupported("MP916", "A region with a backward pass changes the autograd history of an outside tensor.")
    passed = {id(value) for value in inputs}
    with_history = [i for i, out in enumerate(outputs) if _has_history(out) and id(out) not in passed]
    if kept := [outputs[i] for i in with_history if not is_freed([outputs[i]])]:
        text = "A result of a region with a backward pass can still be differentiated: a compiled graph can't support that."
        raise (Unsupported if all(_depends_on_one(value, passed) for value in kept) else _OwnHistory)("MP916", text)
    return Differentiated(graph, [f.detach() if isinstance(f, torch.Tensor) else f for f in fakes], with_history)


def _has_history_outside(fake: Any) -> bool:
    return isinstance(fake, torch.Tensor) and fake.requires_grad and not fake.is_leaf


def _is_only_detached(node: torch.fx.Node) -> bool:
    """Whether an input is only ever detached, like the state that a truncated backward pass carries on: its history is not
    used."""
    return bool(node.users) and all(operator_name(user) == "detach" and user.args[:1] == (node,) for user in node.users)


class _OwnHistory(Unsupported):
    """A result requires a gradient only because of a leaf that is made in the graph: AOTAutograd's would not."""


def _depends_on_one(value: torch.Tensor, inputs: set[int]) -> bool:
    """Whether autograd would reach one of the ``inputs``, by their ids, from ``value``."""
    nodes = reached_nodes([value]) if value.grad_fn is not None else ()
    return any(is_leaf_node(node) and id(node.variable) in inputs for node in nodes)


def operations_of(gm: torch.fx.GraphModule, fakes: Sequence[Any], mode: Any) -> Differentiated | None:
    """``gm``, which is called without autograd, as ATen operations; None if it can't be traced, or its sizes vary."""
    if not all(isinstance(fake, torch.Tensor) and all(type(n) is int for n in fake.shape) for fake in fakes):
        return None
    try:
        return differentiate(gm, fakes, mode)
    except Exception:  # torch's tracers may raise anything; compilers trace it in their own way
        return None


def _order_passes(gm: torch.fx.GraphModule) -> None:
    """Lets each backward pass begin when its roots have been computed: an operation on the way to them that raises has done
    so by then, and nothing that depends on a gradient has been written (``opgraph.raising``)."""
    for node in gm.graph.nodes:
        if IS_BACKWARD not in node.meta:
            continue
        roots, given = node.args[0], node.kwargs.get("grad_outputs") or [None] * len(node.args[0])
        with gm.graph.inserting_before(node):
            seeds = [
                gm.graph.call_function(torch.ones_like, (root,)) if seed is None else seed
                for root, seed in zip(roots, given, strict=True)
            ]
            for root in roots:
                seeds = [gm.graph.call_function(after, (seed, root)) for seed in seeds]
        node.kwargs = {**node.kwargs, "grad_outputs": tuple(seeds)}
    gm.recompile()


def call_without_autograd(fn: Direct, boxed: Boxed | None, freed: Sequence[int]) -> tuple[Direct, Boxed | None]:
    """``fn`` and ``boxed``, run with gradients disabled; the ``freed`` outputs raise when they are differentiated."""

    def finished(outputs: Sequence[Any]) -> Sequence[Any]:
        if not freed:
            return outputs
        given = list(outputs)
        with torch.enable_grad():
            for i in freed:
                given[i] = _Freed.apply(given[i], _anchor())  # type: ignore[no-untyped-call]
        return given

    def call(*inputs: Any) -> Sequence[Any]:
        with no_autograd():
            outputs = fn(*inputs)
        return finished(outputs)

    def call_boxed(inputs: list[Any]) -> Sequence[Any]:
        assert boxed is not None
        with no_autograd():
            outputs = boxed(inputs)
        return finished(outputs)

    return call, None if boxed is None else call_boxed


def _leaf(fake: Any) -> Any:
    """A leaf like ``fake``, in the same memory, for the run to write and to differentiate."""
    return fake.detach().requires_grad_(fake.requires_grad) if isinstance(fake, torch.Tensor) else fake


def _has_history(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.requires_grad


@functools.cache
def _anchor() -> torch.Tensor:
    return torch.zeros(0, requires_grad=True)


@functools.cache
def _error() -> str:
    """Torch's error for a graph that has been freed."""
    leaf = torch.ones((), requires_grad=True)
    with torch.enable_grad():  # they are disabled in the backward pass that calls this
        square = leaf * leaf
    torch.autograd.grad(square, leaf)
    try:
        torch.autograd.grad(square, leaf)
    except RuntimeError as error:
        return str(error)
    raise AssertionError("a freed graph was differentiated")


class _Freed(torch.autograd.Function):
    """The same value, whose history has been freed."""

    @staticmethod
    def forward(ctx: Any, value: torch.Tensor, anchor: torch.Tensor) -> torch.Tensor:
        return value.detach()

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        raise RuntimeError(_error())
