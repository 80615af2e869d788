"""``add(x, mm, alpha=a)`` before Inductor's passes see it: one of them makes ``addmm(x, ...)`` of it and drops ``a``.

Seen in torch 2.13 on the CPU; elsewhere the rewritten sum is the same. Key type: ScaledProducts.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.fx
from torch._inductor.custom_graph_pass import CustomGraphPass

aten = torch.ops.aten


class ScaledProducts(CustomGraphPass):
    """For ``torch._inductor.config.post_grad_custom_pre_pass``. ``before``: what was set there, a pass, several or None."""

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
        """Part of the key of Inductor's cache; None, if an unknown pass runs too: then nothing is kept there."""
        return "magpy: scaled products" if not self.before else None


def _is_product(value: Any) -> bool:
    return isinstance(value, torch.fx.Node) and value.target in (aten.mm.default, aten.addmm.default, aten.bmm.default)
