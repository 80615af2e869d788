"""Gradients that are None in eager mode and would be zeros in compiled code.

AOTAutograd has one backward graph for all outputs: if a loss uses only some of them, it takes zeros for the gradients of the
others, so that parameters that the loss does not depend on get zero gradients, and an optimizer changes them (by weight
decay or momentum). In eager mode they get none. A run on fakes finds out which inputs each output depends on; a hook of the
compiled graph's autograd node then removes the gradients of inputs that no used output depends on. If a parameter has hooks,
its zeros stay: autograd would call the hooks with None. Key function: `keep_undefined`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.fx

from magpy_core._compat.torch.compiled_nodes import compiled_edge, has_hooks, input_edge, on_gradients
from magpy_core.backends.sharing import copied

Boxed = Callable[[list[Any]], Sequence[Any]]


def keep_undefined(gm: torch.fx.GraphModule, fakes: Sequence[Any], mode: Any, boxed: Boxed) -> Boxed:
    """``boxed``, the compiled ``gm``, with eager's gradients if a loss uses only some of its outputs. Raises whatever a run
    of ``gm`` on fakes raises."""
    reached = _reached(gm, fakes, mode)
    differentiable = [inputs for inputs in reached if inputs is not None]
    if all(inputs == differentiable[0] for inputs in differentiable):
        return boxed
    return _WithUndefined(boxed, reached)


def _reached(gm: torch.fx.GraphModule, fakes: Sequence[Any], mode: Any) -> list[frozenset[int] | None]:
    """For each output, the positions of the inputs that its gradient flows to; None if it does not require a gradient."""
    returned: Any = gm.graph.output_node().args[0]
    if len(returned) < 2 or not torch.is_grad_enabled():
        return []
    with mode:
        values = [copied(fake) for fake in fakes]
        results = gm(*values)
    positions: dict[tuple[Any, int], list[int]] = {}
    for i, value in enumerate(values):
        if isinstance(value, torch.Tensor) and value.requires_grad:
            positions.setdefault(input_edge(value), []).append(i)
    return [_from(result, positions) for result in results]


def _from(result: Any, positions: dict[tuple[Any, int], list[int]]) -> frozenset[int] | None:
    if not isinstance(result, torch.Tensor) or not result.requires_grad:
        return None
    todo, seen, found = [input_edge(result)], set(), set()
    while todo:
        edge = todo.pop()
        if edge in seen or edge[0] is None:
            continue
        seen.add(edge)
        if edge in positions:
            found.update(positions[edge])
        else:
            todo += edge[0].next_functions
    return frozenset(found)


class _WithUndefined:
    """``reached``: for each output, the inputs that its gradient flows to."""

    def __init__(self, boxed: Boxed, reached: Sequence[frozenset[int] | None]) -> None:
        self._boxed, self._reached = boxed, reached
        self._needs: list[frozenset[int]] | None = None  # for each input of the node: the outputs whose gradients flow there

    def __call__(self, inputs: list[Any]) -> Sequence[Any]:
        given = list(inputs) if self._needs is None and torch.is_grad_enabled() else ()
        results = self._boxed(inputs)
        if torch.is_grad_enabled():
            node = next((edge[0] for result in results if (edge := _edge(result)) is not None), None)
            if node is not None:
                if self._needs is None:
                    self._needs = self._found(node, given, results)
                on_gradients(node, self._drop_unneeded)
        return results

    def _found(self, node: Any, given: Sequence[Any], results: Sequence[Any]) -> list[frozenset[int]]:
        outputs: dict[int, set[int]] = {}  # by position of an input
        for result, inputs in zip(results, self._reached, strict=True):
            if inputs is not None and (edge := _edge(result)) is not None:
                for position in inputs:
                    outputs.setdefault(position, set()).add(edge[1])
        numbers: dict[Any, set[int]] = {}  # by edge: one tensor may be several inputs
        for position, tensor in enumerate(given):
            if isinstance(tensor, torch.Tensor) and tensor.requires_grad:
                numbers.setdefault(input_edge(tensor), set()).update(outputs.get(position, ()))
        return [frozenset(numbers.get(edge, ())) for edge in node.next_functions]

    def _drop_unneeded(self, edges: Sequence[Any], gradients: Sequence[Any], given: Sequence[Any]) -> tuple[Any, ...] | None:
        undefined = {i for i, gradient in enumerate(given) if gradient is None}
        if not undefined or self._needs is None:
            return None
        return tuple(
            None if needs and needs <= undefined and not has_hooks(node) else gradient
            for gradient, needs, (node, _) in zip(gradients, self._needs, edges, strict=True)
        )


def _edge(result: Any) -> tuple[Any, int] | None:
    return compiled_edge(result) if isinstance(result, torch.Tensor) and result.requires_grad else None
