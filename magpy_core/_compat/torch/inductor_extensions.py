"""MagPy's extensions of Inductor: a partition, a pass over its graphs, an operator. Imports Inductor.

Key types: MinCut, ScaledProducts; key name: ``hoist``.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.fx
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch._inductor.custom_graph_pass import CustomGraphPass, CustomPartitionerFn
from torch._inductor.lowering import clone, register_lowering

from magpy_core._compat.torch.partition import partitioned

aten = torch.ops.aten


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


class ScaledProducts(CustomGraphPass):
    """Rewrites ``add(x, mm, alpha=a)`` before Inductor's passes: one of them converts it to ``addmm(x, ...)`` without ``a``.

    Observed in torch 2.13 on the CPU; elsewhere the rewritten sum is equivalent.

    For ``torch._inductor.config.post_grad_custom_pre_pass``. ``before``: its previous value, a pass, several or None."""

    def __init__(self, before: Any) -> None:
        self.before = [before] if callable(before) else list(before or ())

    def __call__(self, graph: torch.fx.Graph) -> None:
        for known in self.before:
            known(graph)
        for node in list(graph.nodes):
            if node.target is aten.add.Tensor and node.kwargs.get("alpha", 1) != 1 and any(map(_is_product, node.args)):
                with graph.inserting_before(node):
                    scaled = graph.call_function(aten.mul.Tensor, (node.args[1], node.kwargs["alpha"]))
                scaled.meta.update({k: v for k, v in node.args[1].meta.items() if k == "val"})
                node.args = (node.args[0], scaled)
                node.kwargs = {k: v for k, v in node.kwargs.items() if k != "alpha"}

    def uuid(self) -> Any:
        """Part of the key of Inductor's cache; None if an unknown pass runs too, so that nothing is cached."""
        return "magpy: scaled products" if not self.before else None


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
