"""MagPy's extensions of Inductor: a partition, a pass over its graphs, an operator. Imports Inductor.

Key types: MinCut, ScaledProducts, SeparateResults; key name: ``hoist``.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.fx
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch._inductor.custom_graph_pass import CustomGraphPass, CustomPartitionerFn
from torch._inductor.lowering import clone, register_lowering

from magpy_core._compat.torch.partition import partitioned
from magpy_core._compat.torch.tensor_guards import storage_key

aten = torch.ops.aten
#: Operators that copy a value, with its position among their arguments.
_COPIES: dict[Any, int] = {aten.clone.default: 0, aten.copy.default: 1, torch.ops.prims.convert_element_type.default: 0}


class MinCut(CustomPartitionerFn):
    """Inductor's default partition, with draws in the half where they were recorded: for
    ``torch._inductor.config.custom_partitioner_fn``."""

    def __init__(self, place_draws: bool) -> None:
        self.place_draws = place_draws

    def __call__(self, gm: torch.fx.GraphModule, joint_inputs: Any, **options: Any) -> Any:
        return partitioned(min_cut_rematerialization_partition, gm, joint_inputs, place_draws=self.place_draws, **options)

    def uuid(self) -> str:
        """Part of the key of Inductor's cache."""
        return f"magpy: draws where they were recorded: {self.place_draws}, written inputs saved as copies"


class _Correction(CustomGraphPass):
    """Changes a graph before passes of Inductor that would make it wrong (observed in torch 2.13). ``before``: the previous
    value of the setting that runs it, a pass, several or None."""

    name = ""

    def __init__(self, before: Any) -> None:
        self.before = [before] if callable(before) else list(before or ())

    def __call__(self, graph: torch.fx.Graph) -> None:
        for known in self.before:
            known(graph)
        self.apply(graph)

    def apply(self, graph: torch.fx.Graph) -> None:
        raise NotImplementedError

    def uuid(self) -> Any:
        """Part of the key of Inductor's cache; None if an unknown pass runs too, so that nothing is cached."""
        return f"magpy: {self.name}" if not self.before else None


class ScaledProducts(_Correction):
    """Rewrites ``add(x, mm, alpha=a)``: on the CPU, a pass converts it to ``addmm(x, ...)`` without ``a``. Elsewhere the
    rewritten sum is equivalent. For ``torch._inductor.config.post_grad_custom_pre_pass``."""

    name = "scaled products"

    def apply(self, graph: torch.fx.Graph) -> None:
        for node in list(graph.nodes):
            if node.target is aten.add.Tensor and node.kwargs.get("alpha", 1) != 1 and any(map(_is_product, node.args)):
                with graph.inserting_before(node):
                    scaled = graph.call_function(aten.mul.Tensor, (node.args[1], node.kwargs["alpha"]))
                scaled.meta.update({k: v for k, v in node.args[1].meta.items() if k == "val"})
                node.args = (node.args[0], scaled)
                node.kwargs = {k: v for k, v in node.kwargs.items() if k != "alpha"}


class SeparateResults(_Correction):
    """Keeps results apart that are copies of one value: a pass removes copies, and would make them one tensor. The second
    copy is made by an operator that it does not know. For ``torch._inductor.config.joint_custom_pre_pass``."""

    name = "separate results"

    def apply(self, graph: torch.fx.Graph) -> None:
        (output,) = graph.find_nodes(op="output")
        results = output.args[0] if isinstance(output.args[0], list | tuple) else output.args
        memory: dict[torch.fx.Node, int] = {}  # of the first result that is a copy of a value
        for result in {node: None for node in results if isinstance(node, torch.fx.Node)}:
            origin = _origin(result)
            if origin is result or not isinstance(result.meta.get("val"), torch.Tensor):
                continue
            key = storage_key(result.meta["val"])
            if memory.setdefault(origin, key) != key:
                with graph.inserting_before(output):
                    copy = graph.call_function(hoist, (result,))
                copy.meta["val"] = result.meta["val"]
                output.replace_input_with(result, copy)


def _origin(node: torch.fx.Node) -> torch.fx.Node:
    """The value that ``node`` is a view or a copy of."""
    while node.target in _COPIES or (node.op == "call_function" and getattr(node.target, "is_view", False)):
        source = node.args[_COPIES.get(node.target, 0)]
        if not isinstance(source, torch.fx.Node):
            break
        node = source
    return node


def _is_product(value: Any) -> bool:
    return isinstance(value, torch.fx.Node) and value.target in (aten.mm.default, aten.addmm.default, aten.bmm.default)


_LIBRARY = torch.library.Library("magpy", "DEF")
_LIBRARY.define("hoist(Tensor x) -> Tensor")
_LIBRARY.impl("hoist", torch.clone, "CompositeExplicitAutograd")
_LIBRARY.impl("hoist", torch.empty_like, "Meta")
hoist: Any = torch.ops.magpy.hoist.default
"""An identity on a 0-d tensor that Inductor computes once, in a separate kernel.

Inductor inlines pointwise producers into their consumers' loops. For ``1 - beta ** step`` that would be a float64 pow for
every element of every parameter (measured: an AdamW step 3x slower).
"""


@register_lowering(hoist, type_promotion_kind=None)
def _hoisted(x: Any) -> Any:
    result = clone(x)
    result.realize()
    return result
