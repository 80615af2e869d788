"""Prepares graphs for AOTAutograd: copies them, makes the default device explicit, refuses unsafe ones.

Key function: `prepare`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
import torch.fx

from magpy_core._compat.torch.fx_targets import device_constructors, printable_targets
from magpy_core._compat.torch.operators import is_recurrent, known_miscompilation
from magpy_core.backends.sharing import may_overlap, own_memory, repeated_write, split_views
from magpy_core.findings import Unsupported
from magpy_core.opgraph.functions import argument, operator_name

#: Operations that depend on a tensor's offset in its storage, which a capture does not fix (see `fakes.make_fake_inputs`).
_SEES_OFFSET = {"as_strided": 3, "as_strided_": 3, "as_strided_copy": 3, "as_strided_scatter": 4}

#: The parameter for the dropout rate, by name and position.
_RATES = {"scaled_dot_product_attention": ("dropout_p", 4), "multi_head_attention_forward": ("dropout_p", 10)}

#: Known miscompilations of torch's decompositions or functionalization (torch.compile has them as well): wrong values, a
#: lost write, a result that shares its input's memory. The backward pass of a non-square LU decomposition raises.
_WRONG = frozenset({"multilabel_margin_loss"})
_WRONG_OUT = frozenset({"linalg_matrix_rank", "matrix_rank", "conj_physical"})


def prepare(gm: torch.fx.GraphModule, fakes: Sequence[Any], device: torch.device) -> torch.fx.GraphModule:
    """A copy of ``gm`` that the compilers may change; raises Unsupported for operations that they compile incorrectly.

    ``fakes``: its inputs; ``device``: the program's current default device.
    """
    graph = torch.fx.Graph()
    graph.output(graph.graph_copy(gm.graph, {}))
    graph.lint()
    copied = torch.fx.GraphModule(gm, graph)
    _refuse(copied, fakes)
    _write_default_device(copied, device)
    printable_targets(copied)
    return copied


def _refuse(gm: torch.fx.GraphModule, fakes: Sequence[Any]) -> None:
    inputs = dict(zip(gm.graph.find_nodes(op="placeholder"), fakes, strict=True))
    reasons = [_compiled_wrongly(node, inputs) for node in gm.graph.nodes] + [split_views(gm.graph, inputs)]
    if torch.is_grad_enabled() and any(isinstance(t, torch.Tensor) and t.requires_grad for t in fakes):
        reasons.append(repeated_write(gm.graph))
    if _on_a_device(fakes) and any(map(is_recurrent, gm.graph.nodes)) and _uses_autocast(gm.graph):
        reasons.append("Under autocast, a recurrent layer has results of another type on a device than in compiled code.")
    for reason in filter(None, reasons):
        raise Unsupported("MP916", reason)


def _compiled_wrongly(node: torch.fx.Node, inputs: dict[torch.fx.Node, Any]) -> str | None:
    """Why compilers get an operation wrong; None if they don't."""
    name = operator_name(node)
    if (position := _SEES_OFFSET.get(name)) is not None:
        if argument(node, "storage_offset", position) is not None:
            return f"`{name}` with a storage offset accesses memory outside its tensor."
        if node.args[0] in inputs:
            return f"`{name}` of an outside tensor may access memory beyond its elements."
    if name == "detach_" and node.args[0] in inputs:  # raises for views, and no guard distinguishes these
        return "`detach_` detaches an outside tensor from autograd: a compiled graph can't do that."
    if name == "_assert_async":
        return "`_assert_async` raises what no result depends on, so compilers leave it out."
    if name in _WRONG or (name in _WRONG_OUT and "out" in node.kwargs) or "lu" in name.split("_"):
        return f"torch compiles `{name}` incorrectly."
    if _drops_all(node, name):
        return f"`{name}` has the rate 1: compiled code uses random numbers, but eager mode uses none."
    if _drops_between_layers(node) and _on_a_device(inputs.values()):
        return f"`{name}` with dropout uses random numbers of a device that compiled code can't use."
    if name.startswith("_foreach_") and name.endswith("_"):
        given = [inputs.get(n) for n in node.all_input_nodes]
        if _has_repeated_memory(node) or may_overlap([t for t in given if isinstance(t, torch.Tensor)]):
            return f"The tensors of `{name}` may overlap, and eager mode changes one after the other."
    return known_miscompilation(name)


def _drops_all(node: torch.fx.Node, name: str) -> bool:
    """Whether a dropout has the rate 1, alone or inside attention or a recurrent layer."""
    if is_recurrent(node):
        return any(type(value) is float and value == 1.0 for value in node.args)
    key, position = _RATES.get(name, ("p", 1)) if name in _RATES or "dropout" in name else ("", 0)
    rate = argument(node, key, position)
    return bool(key) and type(rate) in (int, float) and rate == 1


def _on_a_device(fakes: Iterable[Any]) -> bool:
    return any(isinstance(fake, torch.Tensor) and fake.device.type != "cpu" for fake in fakes)


def _uses_autocast(graph: torch.fx.Graph) -> bool:
    """Whether it is on around a graph on a device, or inside it."""
    return torch.is_autocast_enabled("cuda") or any("autocast" in operator_name(node) for node in graph.nodes)


def _drops_between_layers(node: torch.fx.Node) -> bool:
    """Whether a recurrent layer in training drops values: cuDNN then has random numbers of its own."""
    rates = [i for i, value in enumerate(node.args) if type(value) is float and value > 0] if is_recurrent(node) else []
    return any(node.args[i - 1] != 1 and node.args[i + 1] is True for i in rates)


def _has_repeated_memory(node: torch.fx.Node) -> bool:
    """Whether an operation on lists writes memory that it also takes in another place: a tensor, or a view of it (parts of
    one tensor count, too, which no optimizer of torch's takes)."""
    written, *lists = [a for a in (*node.args, *node.kwargs.values()) if isinstance(a, list | tuple)]
    place = {own_memory(n): i for i, n in enumerate(written)}
    nodes = [(i, one) for values in lists for i, one in enumerate(values) if isinstance(one, torch.fx.Node)]
    return len(place) < len(written) or any(place.get(own_memory(one), i) != i for i, one in nodes)


def _write_default_device(gm: torch.fx.GraphModule, device: torch.device) -> None:
    """Makes the default device of ``torch.zeros(3)`` explicit, since compilers run without the mode that sets it."""
    if device.type == "cpu":
        return
    constructors = device_constructors()
    for node in gm.graph.nodes:
        if node.op == "call_function" and node.target in constructors and node.kwargs.get("device") is None:
            node.kwargs = {**node.kwargs, "device": device}
    gm.recompile()
