"""What the inputs of a capture's graph were when it was recorded. Key type: Examples; key function: dynamic_dims."""

from __future__ import annotations

import functools
from typing import Any

import torch
import torch.fx

from magpy_core.backends.fakes import fakes_from_facts, make_fake_inputs
from magpy_core.guards.explain import TensorFacts
from magpy_core.recording.trace import Live, Trace


class Examples:
    """Facts of tensors and values of scalars, in the order of the placeholders. A dynamic capture keeps fake tensors, whose
    symbolic sizes can't be made from facts."""

    def __init__(self, trace: Trace, live: Live, placeholders: tuple[torch.fx.Node, ...]) -> None:
        facts: dict[Any, Any] = {i.node: i.facts for i in trace.inputs}
        facts |= {node: sym.hint for node, sym in trace.numbers}
        self._facts = [facts[n] for n in placeholders]
        if trace.dims:
            real = live.inputs
            dims = {i: d for i, n in enumerate(placeholders) if n in real and (d := dynamic_dims(trace, n, real[n]))}
            self.fakes = make_fake_inputs([real.get(n, facts[n]) for n in placeholders], dims or None).fakes

    @functools.cached_property
    def fakes(self) -> list[Any]:
        """Fake example inputs; created only when the operator graph is read."""
        return fakes_from_facts(
            [
                (f.shape, f.stride, f.dtype, f.device, f.requires_grad, f.type) if isinstance(f, TensorFacts) else f
                for f in self._facts
            ]
        )


def dynamic_dims(trace: Trace, node: torch.fx.Node, tensor: torch.Tensor) -> set[int]:
    """The dimensions of an input that may vary from call to call."""
    source = node.meta.get("magpy_source")
    return {d for d in trace.dims.get(source.path, ()) if d < tensor.dim()} if source is not None else set()
