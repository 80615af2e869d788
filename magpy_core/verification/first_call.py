"""Checks compiled code of a graph in the call that it would serve first. Key function: check; key type: Verdict."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.fx

from magpy_core._compat.torch.surroundings import foreign
from magpy_core._compat.torch.torch_state import (
    get_modes,
    preserve_torch_state,
    random_streams,
    restore_streams,
    same_streams,
    set_modes,
)
from magpy_core._compat.torch.warning_filters import no_warnings
from magpy_core.backends.sharing import written_positions
from magpy_core.opgraph.functions import REGISTERS_HOOK
from magpy_core.opgraph.naming import Unnamed, target_name
from magpy_core.opgraph.replicas import communicates
from magpy_core.opgraph.segments import with_checkpoints
from magpy_core.verification.copies import Copies
from magpy_core.verification.difference import Difference, Values, apart, difference
from magpy_core.verification.noise import Noisy


@dataclass(frozen=True)
class Verdict:
    """What was found in so many ``seconds``: a ``difference``; why nothing could be compared (``unchecked``); or that both
    are the same, up to rounding. ``apart``: the largest difference of an element, as a part of its tensor's largest."""

    seconds: float
    difference: Difference | None = None
    unchecked: str = ""
    apart: float = 0.0


def check(
    gm: torch.fx.GraphModule,
    compiled: Callable[[list[Any]], Any],
    inputs: Sequence[Any],
    written: Collection[int],
    *,
    same_random: bool,
    strict: bool = False,
) -> Verdict:
    """Compares one run of ``gm`` with one of ``compiled``, for ``inputs``. These stay as they are, as do the random state
    and torch's modes. ``written``: positions of inputs that are known to be written; ``same_random``: the compiled code
    draws eager mode's numbers. ``strict``: they must be the same bit by bit."""
    start = time.perf_counter()
    try:
        verdict = Verdict(0.0, unchecked=_refusal(gm, inputs))
        if not verdict.unchecked:
            changes = {*written, *written_positions(gm.graph)}
            verdict = _checked(gm, compiled, Copies(inputs, changes), same_random=same_random, strict=strict)
    except Exception as error:  # of the graph itself, which then raises in the program's call, too; or of our own
        verdict = Verdict(0.0, unchecked=f"{type(error).__name__}: {str(error)[:160]}")
    return replace(verdict, seconds=time.perf_counter() - start)


def _refusal(gm: torch.fx.GraphModule, inputs: Sequence[Any]) -> str:
    """Why the graph is not to be run once more; empty if it may be."""
    if around := foreign():
        return f"{around} would see it"
    tensors = [value for value in inputs if isinstance(value, torch.Tensor)]
    if any(tensor.device.type != "cpu" for tensor in tensors):
        return "it runs on an accelerator"
    if any(type(tensor) not in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer) for tensor in tensors):
        return "it takes tensors of other classes"
    for node in gm.graph.nodes:
        if node.op == "get_attr" or REGISTERS_HOOK in node.meta:
            return "it calls code of the program"
        if node.op in ("placeholder", "output"):
            continue
        if communicates(node):
            return "it communicates with other processes"
        try:
            target_name(node.target)
        except Unnamed:
            return "it calls code of the program"
    return ""


def _checked(
    gm: torch.fx.GraphModule, compiled: Callable[[list[Any]], Any], copies: Copies, *, same_random: bool, strict: bool
) -> Verdict:
    graph = torch.fx.Graph()
    graph.output(graph.graph_copy(gm.graph, {}))
    reference = with_checkpoints(torch.fx.GraphModule(gm, graph))
    # a graph with a backward pass has used up the history of what it returns
    differentiates = all(node.target is not torch.autograd.grad for node in gm.graph.nodes)

    def values(run: Callable[[list[Any]], Any], inputs: list[Any], seed: int = 0) -> Values:
        found, leaves = _values(run, inputs, copies.written)
        if differentiates:
            found |= _gradients(found, leaves, seed)
        return Values({what: value.detach() if isinstance(value, torch.Tensor) else value for what, value in found.items()})

    with preserve_torch_state(), no_warnings():  # the recorded call has given them
        torch.set_autocast_cache_enabled(False)  # it would keep the copies
        streams = random_streams()
        eager = values(lambda inputs: reference(*inputs), copies.made())
        after = random_streams()
        if not same_random and not same_streams(streams, after):
            return Verdict(0.0, unchecked="it draws other random numbers than eager mode")
        restore_streams(streams)
        code = values(compiled, copies.made())
        if not same_streams(after, random_streams()):
            return Verdict(0.0, Difference("the random state", "is another one after the call"))

        def noisy(seed: int) -> Values:
            restore_streams(streams)
            interpreter = Noisy(gm, seed)
            inputs = copies.made(interpreter)
            return values(lambda given: interpreter.run(*given), inputs, seed + 1)

        return Verdict(0.0, difference(eager, code, None if strict else noisy), apart=apart(eager, code))


def _values(
    run: Callable[[list[Any]], Any], inputs: list[Any], written: Sequence[int]
) -> tuple[dict[str, Any], dict[int, torch.Tensor]]:
    """What a run gives, and the inputs that require gradients."""
    leaves = {i: t for i, t in enumerate(inputs) if isinstance(t, torch.Tensor) and t.requires_grad}
    kept = list(inputs)  # compiled code empties the list
    modes = get_modes()
    try:
        results = list(run(inputs))
    finally:
        set_modes(modes)
    named = {f"result {i}": value for i, value in enumerate(results)}
    return named | {f"written input {i}": kept[i] for i in written}, leaves


def _gradients(found: Mapping[str, Any], leaves: Mapping[int, torch.Tensor], seed: int) -> dict[str, Any]:
    """Of the ``leaves``. The backward pass starts with random gradients, which are nearly the same by any ``seed``."""
    roots = [t for t in found.values() if isinstance(t, torch.Tensor) and t.requires_grad and t.grad_fn is not None]
    if not roots or not leaves:
        return {}
    with torch.autocast("cpu", enabled=False):  # as in the program, whose backward pass is outside of the call
        gradients = torch.autograd.grad(roots, list(leaves.values()), _cotangents(roots, seed), allow_unused=True)
    return {f"gradient of input {i}": gradient for i, gradient in zip(leaves, gradients, strict=True)}


def _cotangents(roots: Sequence[torch.Tensor], seed: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    found = [torch.randn(t.shape, generator=generator, dtype=torch.float32).to(t.dtype) for t in roots]
    if seed:  # noise for the backward pass as well
        noise = torch.Generator().manual_seed(seed)
        found = [
            t * (1 + torch.finfo(t.dtype).eps * (2 * torch.rand(t.shape, generator=noise) - 1)).to(t.dtype) for t in found
        ]
    return found
