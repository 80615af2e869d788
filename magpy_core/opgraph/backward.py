"""Backward: ``backward()`` inside a region, recorded as the operations that it consists of.

It becomes one call of ``torch.autograd.grad`` for the leaves that the pass reaches; then each gradient is assigned to its
leaf, or added to the gradient that the leaf has. The recorded run computes it in the same way, so that the graph repeats
exactly what ran. Key type: Backward; key function: new_gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch

from magpy_core._compat.torch.autograd_nodes import custom_function, has_hooks, is_leaf_node, is_plain_node, reached_nodes
from magpy_core._compat.torch.tensor_guards import no_torch_function
from magpy_core.findings import HERE, Unsupported
from magpy_core.opgraph.functions import IS_BACKWARD
from magpy_core.opgraph.hooks import HOOKS
from magpy_core.opgraph.operator_graph import OperatorGraph
from magpy_core.opgraph.replicas import Record
from magpy_core.refgraph.kinds import is_a

BACKWARD: tuple[Any, ...] = (torch.Tensor.backward, torch.autograd.backward)
_PLAIN = (torch.Tensor, torch.nn.Parameter)
_GRAD: Any = torch.Tensor.grad
_METHOD = ("gradient", "retain_graph", "create_graph", "inputs")
_FUNCTION = ("grad_tensors", "retain_graph", "create_graph", "grad_variables", "inputs")
_HINT = "Call `backward()` outside the region, on the region's result."
FROM_OUTSIDE = "through the history of an outside tensor"
"""In the message about a backward pass of a loss that was not computed in the region."""
#: Fields of a leaf that affect what a backward pass does with its gradient, with the values that can be recorded.
_PLAIN_LEAF = (("is_leaf", True), ("_post_accumulate_grad_hooks", None))
LEAF_FIELDS = frozenset({*dict(_PLAIN_LEAF), HOOKS, "grad_dtype"})


def new_gradient(leaf: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor:
    """A copy of ``gradient`` as the first gradient of ``leaf``, with the strides that autograd would give it."""
    if not _is_dense(leaf):
        return gradient.clone(memory_format=torch.contiguous_format)
    strides = gradient.stride() if _are_laid_out_alike(gradient, leaf) else leaf.stride()
    return torch.empty_strided(gradient.size(), strides, dtype=gradient.dtype, device=gradient.device).copy_(gradient)


def _are_laid_out_alike(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors of the same shape have the same strides, in dimensions where a stride matters."""
    return all(n == 1 or a == b for n, a, b in zip(one.size(), one.stride(), other.stride(), strict=True))


def _is_dense(tensor: torch.Tensor) -> bool:
    """Whether the elements of a tensor fill its memory without overlap, in some order of its dimensions."""
    step = 1
    for stride, size in sorted((s, n) for s, n in zip(tensor.stride(), tensor.size(), strict=True) if n != 1):
        if stride != step:
            return tensor.is_contiguous()  # true for an empty tensor
        step *= size
    return True


@dataclass
class Backward:
    """One backward pass that is about to run: from ``roots`` to ``leaves``."""

    ops: OperatorGraph
    roots: tuple[torch.Tensor, ...]
    leaves: tuple[torch.Tensor, ...]
    options: dict[str, Any]
    """The other arguments of ``torch.autograd.grad``."""
    gradients: list[tuple[torch.Tensor, torch.Tensor]] = field(default_factory=list)
    """Leaves with the computed gradients that they have not received yet."""

    @staticmethod
    def prepare(ops: OperatorGraph, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Backward:
        """The backward pass that ``func(*args, **kwargs)`` runs; raises Unsupported if it does more than a graph can
        repeat."""
        given = _arguments(func, args, kwargs)
        roots, gradients, inputs = given["roots"], given["gradients"], given["inputs"]
        with no_torch_function():
            if given["create_graph"]:
                raise _refused("with `create_graph=True`")
            if not roots or any(type(t) not in _PLAIN or not t.requires_grad for t in roots):
                raise _refused("from a value that does not require a gradient")
            if gradients is not None and any(g is not None and type(g) not in _PLAIN for g in gradients):
                raise _refused("with gradients that are not plain tensors")
            nodes = reached_nodes(roots)
            _check_nodes(ops, nodes)
            leaves = [node.variable for node in nodes if is_leaf_node(node)]
            if inputs is not None:
                known = {id(leaf) for leaf in leaves}
                if len({id(t) for t in inputs}) != len(inputs) or any(id(t) not in known for t in inputs):
                    raise _refused("with `inputs` that are not distinct leaves of its graph")
                leaves = list(inputs)
            for leaf in leaves:
                _check_leaf(ops, leaf)
            held = [id(leaf.grad) for leaf in leaves if leaf.grad is not None]
            if not leaves or len(set(held)) != len(held):
                raise _refused("to leaves that share one gradient, or to no leaf at all")
            ops.leaves.replicas.check(leaves)
        ops.host.guard_setting(torch.is_anomaly_enabled, False)
        for leaf in leaves:
            if ops.leaves.is_made(leaf):
                continue
            for name, value in _PLAIN_LEAF:
                ops.host.guard_field(ops.inputs.guard(leaf), leaf, name, value)
            ops.host.guard_field(ops.inputs.guard(leaf), leaf, "grad_dtype", leaf.dtype)
            if leaf._backward_hooks is None:
                ops.host.guard_field(ops.inputs.guard(leaf), leaf, HOOKS, None)
            else:
                ops.leaves.hooks.keep(leaf)
        options = {"grad_outputs": gradients, "retain_graph": given["retain_graph"], "allow_unused": True}
        return Backward(ops, roots, tuple(leaves), options)

    def accumulate(self, record: Record) -> None:
        """Add each gradient to its leaf and remove the pair from ``gradients``; autograd accumulates what remains there."""
        self._mark()
        with no_torch_function():
            if any(g.layout is not torch.strided or type(g) is not torch.Tensor for _, g in self.gradients):
                text, hint = (
                    f"{HERE} computes gradients that are not dense.",
                    "Create the `nn.Embedding` with `sparse=False`.",
                )
                self.ops.host.refuse("MP118", text, hint=hint, site=self.ops.host.site)
                return
        reached = [leaf for leaf, _ in self.gradients]
        while self.gradients:
            leaf, gradient = self.gradients[0]
            before = record(_GRAD.__get__, (), (leaf,), {})
            if before is None:
                first = record(new_gradient, (), (leaf, gradient), {})
                record(_GRAD.__set__, (), (leaf, first), {})
            else:
                record(torch.Tensor.add_, (), (before, gradient), {})
            del self.gradients[0]
        self.ops.leaves.replicas.average(reached, record)

    def _mark(self) -> None:
        """Mark the last recorded call of ``torch.autograd.grad`` as a backward pass."""
        for node in reversed(self.ops.graph.nodes):
            if node.target is torch.autograd.grad:
                node.meta[IS_BACKWARD] = True
                return


def _refused(what: str) -> Unsupported:
    return Unsupported("MP118", f"{HERE} runs a backward pass {what}: MagPy can't record that safely yet.", hint=_HINT)


def _arguments(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of `Tensor.backward` or `torch.autograd.backward`, under the same names."""
    names = _METHOD if func is torch.Tensor.backward else _FUNCTION
    given = dict(zip(names, args[1:], strict=False)) | kwargs
    if given.get("grad_variables") is not None:
        raise _refused("with the deprecated `grad_variables`")
    retain = given.get("retain_graph")
    if retain is not None and type(retain) is not bool:
        raise _refused("with a `retain_graph` that is not a bool")
    gradients = given.get(names[0])
    return {
        "roots": _tensors(args[0]),
        "gradients": None if gradients is None else _tensors(gradients),
        "retain_graph": retain,
        "create_graph": given.get("create_graph"),
        "inputs": None if given.get("inputs") is None else _tensors(given["inputs"]),
    }


def refuse_from_outside(ops: OperatorGraph, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raises Unsupported if the backward pass leaves the region: then it would be refused whatever else is."""
    roots = _arguments(func, args, kwargs)["roots"]
    with no_torch_function():
        if all(type(t) in _PLAIN and t.requires_grad for t in roots) and any(
            n in ops.entry.grad_fns() for n in reached_nodes(roots)
        ):
            raise _refused(f"that leaves the region {FROM_OUTSIDE}")


def _tensors(value: Any) -> tuple[Any, ...]:
    if is_a(value, torch.Tensor):
        return (value,)
    if type(value) in (list, tuple):
        return tuple(value)
    raise _refused("with arguments that are not lists of tensors")


def _check_nodes(ops: OperatorGraph, nodes: Iterable[Any]) -> None:
    """Raises Unsupported where a node runs the program's Python code, or was created before the region."""
    if torch.is_anomaly_enabled():
        raise _refused("in anomaly mode")
    outside = ops.entry.grad_fns()
    for node in nodes:
        if node in outside:
            raise _refused(f"that leaves the region {FROM_OUTSIDE}")
        if not is_plain_node(node) and custom_function(node) not in ops.custom_functions:
            raise _refused("through a custom `autograd.Function` that no call in the region shows")


def _check_leaf(ops: OperatorGraph, leaf: torch.Tensor) -> None:
    """Raises Unsupported for a leaf whose gradient can't be accumulated by plain operations."""
    if type(leaf) not in _PLAIN or leaf.layout is not torch.strided or leaf.is_complex() or leaf.grad_dtype != leaf.dtype:
        raise _refused("to a leaf that is not a plain tensor")
    if leaf in ops.values and ops.inputs.is_inside(leaf) and not ops.leaves.is_made(leaf):
        raise _refused("to a leaf created inside the region")
    if leaf._post_accumulate_grad_hooks is not None:
        raise _refused("to a leaf with hooks that run after its gradient is accumulated")
    if has_hooks(torch.autograd.graph.get_gradient_edge(leaf).node):
        raise _refused("to a leaf with hooks")
    gradient = leaf.grad
    if gradient is None:
        return
    if type(gradient) is not torch.Tensor or gradient.layout is not torch.strided or gradient.requires_grad:
        raise _refused("to a leaf whose gradient is not a plain tensor")
    if not (_are_laid_out_alike(gradient, leaf) if _is_dense(leaf) else gradient.is_contiguous()):
        raise _refused("to a leaf whose gradient has other strides")  # autograd warns about it
