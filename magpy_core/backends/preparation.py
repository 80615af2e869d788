"""What every compiled graph needs before AOTAutograd sees it: a copy, the default device written out, and refusals.

Key function: `prepare`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.fx

from magpy_core._compat.torch.decompositions import draws_otherwise, is_recurrent
from magpy_core._compat.torch.fx_targets import device_constructors, printable_targets
from magpy_core.backends.scalar_ops import name_of
from magpy_core.backends.sharing import may_overlap, split_views
from magpy_core.backends.stretches import inference_leaves, written_again
from magpy_core.findings import Unsupported

#: Operations that see a tensor's place in its storage, which a capture leaves open (see `fakes.make_fake_inputs`).
_SEES_OFFSET = {"as_strided": 3, "as_strided_": 3, "as_strided_copy": 3, "as_strided_scatter": 4}

#: Where operations that drop in passing take their rate.
_RATES = {"scaled_dot_product_attention": ("dropout_p", 4), "multi_head_attention_forward": ("dropout_p", 10)}

#: What torch's own decompositions or functionalization get wrong (torch.compile gives the same): values, a lost write, a
#: result that shares its input's memory. Of an LU decomposition, the backward pass of what isn't square raises.
_WRONG = frozenset({"multilabel_margin_loss"})
_WRONG_OUT = frozenset({"linalg_matrix_rank", "matrix_rank", "conj_physical"})


def prepare(gm: torch.fx.GraphModule, fakes: Sequence[Any], device: torch.device) -> torch.fx.GraphModule:
    """A copy of ``gm`` that the compilers may own and change; raises Unsupported for what they would compile wrongly.

    ``fakes``: its inputs; ``device``: the default device of the program at this moment.
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
    inputs = dict(zip((n for n in gm.graph.nodes if n.op == "placeholder"), fakes, strict=True))
    for node in gm.graph.nodes:
        name = name_of(node.op, node.target) if node.op in ("call_function", "call_method") else ""
        position = _SEES_OFFSET.get(name)
        if position is not None:
            offset = node.kwargs.get("storage_offset", node.args[position] if len(node.args) > position else None)
            if offset is not None:
                raise Unsupported("MP902", f"{name} with a storage offset addresses memory outside the tensor it is given")
            if isinstance(fake := inputs.get(node.args[0]), torch.Tensor) and not _stays_inside(fake, node, position):
                raise Unsupported("MP902", f"{name} reaches memory that lies outside the elements of the tensor it is given")
        if name == "detach_" and node.args[0] in inputs:  # raises for views, and no guard tells views from other tensors
            raise Unsupported("MP902", "detach_ takes a tensor from outside out of autograd, which no compiled graph can")
        if name in _WRONG or (name in _WRONG_OUT and "out" in node.kwargs) or "lu" in name.split("_"):
            raise Unsupported("MP902", f"torch compiles {name} to something else")
        if draws_otherwise(name):
            raise Unsupported("MP902", f"this torch compiles {name} to other random numbers")
        if _drops_all(node, name):
            raise Unsupported(
                "MP902", f"{name} drops everything: compiled it draws random numbers, and plain Python draws none"
            )
        if name.startswith("_foreach_") and name.endswith("_"):
            given = [inputs.get(n) for n in node.all_input_nodes]
            if _given_twice(node) or may_overlap([t for t in given if isinstance(t, torch.Tensor)]):
                raise Unsupported("MP902", f"{name} is given tensors that may overlap: it changes one after the other")
    split = split_views(gm.graph, inputs)
    if split is not None:
        raise Unsupported("MP902", split)
    if inference_leaves(gm.graph):
        raise Unsupported("MP902", "tensors of inference mode leave the region, which compiled graphs make ordinary ones of")
    learning = torch.is_grad_enabled() and any(isinstance(t, torch.Tensor) and t.requires_grad for t in fakes)
    if learning and (written := written_again(gm.graph)) is not None:
        raise Unsupported(
            "MP902", f"{written} is checkpointed and writes what lies outside: the backward pass does it again"
        )


def _drops_all(node: torch.fx.Node, name: str) -> bool:
    """Whether a dropout has the rate 1, alone or inside attention or a recurrent layer."""
    if is_recurrent(node):
        return any(type(value) is float and value == 1.0 for value in node.args)
    key, position = _RATES.get(name, ("p", 1)) if name in _RATES or "dropout" in name else ("", 0)
    rate: Any = node.kwargs.get(key, node.args[position] if len(node.args) > position else None)
    return bool(key) and type(rate) in (int, float) and rate == 1


def _stays_inside(tensor: torch.Tensor, node: torch.fx.Node, position: int) -> bool:
    """Whether ``as_strided`` with these sizes and strides sees elements of the tensor only. ``position``: of the offset."""
    size = node.kwargs.get("size", node.args[position - 2 : position - 1])
    stride = node.kwargs.get("stride", node.args[position - 1 : position])
    size, stride = (v[0] if isinstance(v, tuple) and v and isinstance(v[0], list | tuple) else v for v in (size, stride))
    if not tensor.is_contiguous() or not isinstance(size, list | tuple) or not isinstance(stride, list | tuple):
        return False
    if len(size) != len(stride) or not all(type(n) is int for n in (*size, *stride)):
        return False
    return bool(sum((n - 1) * s for n, s in zip(size, stride, strict=True)) < tensor.numel())


def _given_twice(node: torch.fx.Node) -> bool:
    """Whether an operation on lists has one tensor at two places of them."""
    place: dict[torch.fx.Node, int] = {}
    lists = [a for a in (*node.args, *node.kwargs.values()) if isinstance(a, list | tuple)]
    return any(place.setdefault(n, i) != i for values in lists for i, n in enumerate(values) if isinstance(n, torch.fx.Node))


def _write_default_device(gm: torch.fx.GraphModule, device: torch.device) -> None:
    """``torch.zeros(3)`` goes to the default device of this moment; the compilers run without the mode that says which."""
    if device.type == "cpu":
        return
    constructors = device_constructors()
    for node in gm.graph.nodes:
        if node.op == "call_function" and node.target in constructors and node.kwargs.get("device") is None:
            node.kwargs = {**node.kwargs, "device": device}
    gm.recompile()
