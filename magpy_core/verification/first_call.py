"""Checks compiled code of a graph in the call that it would serve first. Key function: check; key type: Verdict."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import torch
import torch.fx

from magpy_core._compat.torch.condition_op import is_test
from magpy_core._compat.torch.fx_targets import printable_targets
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
    are the same, up to rounding. ``apart``: the largest difference of an element, as a part of its tensor's largest.
    ``losses``: the loss that the graph computes, or its only number, in eager mode and by compiled code.
    ``is_undecided``: nothing could be compared because the graph's writes depend on data that is not as expected in this
    call (``backends.held_writes``): compiled code then writes nothing."""

    seconds: float
    difference: Difference | None = None
    unchecked: str = ""
    apart: float = 0.0
    losses: tuple[float, float] | None = None
    is_undecided: bool = False


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
        verdict = Verdict(0.0, unchecked=refusal(gm, inputs))
        if not verdict.unchecked:
            changes = {*written, *written_positions(gm.graph)}
            verdict = _checked(gm, compiled, Copies(inputs, changes), same_random=same_random, strict=strict)
    except Exception as error:  # of the graph itself, which then raises in the program's call, too; or of our own
        verdict = Verdict(0.0, unchecked=f"{type(error).__name__}: {str(error)[:160]}")
    return replace(verdict, seconds=time.perf_counter() - start)


def refusal(gm: torch.fx.GraphModule, inputs: Sequence[Any]) -> str:
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


def runnable(gm: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """A copy that runs operator by operator. To be called by ``forward``: fx prints errors of other calls."""
    graph = torch.fx.Graph()
    graph.output(graph.graph_copy(gm.graph, {}))
    copy = with_checkpoints(torch.fx.GraphModule(gm, graph))
    printable_targets(copy)
    return copy


class _Reference:
    """Runs a graph operator by operator. ``is_met``: whether the data was as the graph's writes expect, in the last run."""

    def __init__(self, gm: torch.fx.GraphModule) -> None:
        self._module = runnable(gm)
        graph = self._module.graph
        tests = [node for node in graph.nodes if is_test(node)]
        self._tests = len(tests)
        self.is_met = True
        if tests:
            output = graph.output_node()
            output.args = ((*cast(tuple[Any, ...], output.args[0]), *tests),)
            self._module.recompile()

    def __call__(self, inputs: list[Any]) -> list[Any]:
        results = list(self._module.forward(*inputs))
        if self._tests:
            self.is_met = all(map(bool, results[-self._tests :]))
            del results[-self._tests :]
        return results


def _checked(
    gm: torch.fx.GraphModule, compiled: Callable[[list[Any]], Any], copies: Copies, *, same_random: bool, strict: bool
) -> Verdict:
    reference = _Reference(gm)
    # a graph with a backward pass may have used up the history of what it returns
    used_up = any(node.target is torch.autograd.grad for node in gm.graph.nodes)
    live: frozenset[str] | None = None

    def values(run: Callable[[list[Any]], Any], inputs: list[Any], seed: int = 0) -> Values:
        nonlocal live
        found, leaves = _values(run, inputs, copies.written)
        if used_up and live is None:  # in eager mode, which is first
            live = frozenset(what for what, root in roots_among(found).items() if is_live(root, [*leaves.values()]))
        found |= _gradients(found, leaves, seed, live)
        return Values({what: value.detach() if isinstance(value, torch.Tensor) else value for what, value in found.items()})

    with preserve_torch_state(), no_warnings():  # the recorded call has given them
        torch.set_autocast_cache_enabled(False)  # it would keep the copies
        streams = random_streams()
        eager = values(reference, copies.made())
        if not reference.is_met:
            return Verdict(0.0, unchecked="its path was not taken in its first calls", is_undecided=True)
        after = random_streams()
        if not same_random and not same_streams(streams, after):
            return Verdict(0.0, unchecked="it uses other random numbers than eager mode")
        restore_streams(streams)
        code = values(compiled, copies.made())
        if not same_streams(after, random_streams()):
            return Verdict(0.0, Difference("the random state", "is another one after the call"))

        def noisy(seed: int) -> Values:
            restore_streams(streams)
            interpreter = Noisy(gm, seed)
            inputs = copies.made(interpreter)
            return values(lambda given: interpreter.run(*given), inputs, seed + 1)

        found = difference(eager, code, None if strict else noisy)
        return Verdict(0.0, found, apart=apart(eager, code), losses=_losses(gm, eager, code))


def _losses(gm: torch.fx.GraphModule, eager: Values, compiled: Values) -> tuple[float, float] | None:
    """Of the result that a backward pass in the graph begins with, or of the first result that is one number."""
    output = gm.graph.output_node().args[0]
    results = list(output) if isinstance(output, list | tuple) else [output]
    begun = [node.all_input_nodes[:1] for node in gm.graph.find_nodes(op="call_function", target=torch.autograd.grad)]
    roots = [i for i, node in enumerate(results) if any(node in first for first in begun)]
    for index in (*roots, *range(len(results))):
        one, other = (values.named.get(f"result {index}") for values in (eager, compiled))
        if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor) and one.numel() == other.numel() == 1:
            if one.is_floating_point() and other.is_floating_point():
                return float(one), float(other)
    return None


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


def roots_among(found: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """What can be differentiated, as far as it tells itself."""
    tensors = {what: value for what, value in found.items() if isinstance(value, torch.Tensor)}
    return {what: tensor for what, tensor in tensors.items() if tensor.requires_grad and tensor.grad_fn is not None}


def is_live(root: torch.Tensor, leaves: Sequence[torch.Tensor]) -> bool:
    """Whether ``root`` can be differentiated indeed: no backward pass has used up its history."""
    try:
        torch.autograd.grad([root], leaves, [torch.ones_like(root)], retain_graph=True, allow_unused=True)
    except RuntimeError:
        return False
    return True


def _gradients(
    found: Mapping[str, Any], leaves: Mapping[int, torch.Tensor], seed: int, live: Collection[str] | None
) -> dict[str, Any]:
    """Of the ``leaves``. The backward pass starts with random gradients, which are nearly the same by any ``seed``.
    ``live``: the names of what it starts with; None: with all that can be differentiated."""
    roots = [root for what, root in roots_among(found).items() if live is None or what in live]
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
