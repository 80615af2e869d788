"""Whether a recorded graph computes what the program does: it runs operator by operator before a call in eager mode, on
copies of the inputs, and the results are compared. What differs is MagPy's mistake, whatever compiles the graph.

Gradients are not compared: a backward pass would run the program's hooks. Key type: Rerun; key function: rerun.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
import torch.fx

from magpy_core._compat.torch.torch_state import preserve_torch_state, random_streams, restore_streams, same_streams
from magpy_core._compat.torch.warning_filters import no_warnings
from magpy_core.backends.sharing import written_positions
from magpy_core.recording.trace import Trace
from magpy_core.refgraph.fields import instance_dict
from magpy_core.replay.ir import Build, GraphValue
from magpy_core.verification.copies import Copies
from magpy_core.verification.difference import Difference, Values, difference
from magpy_core.verification.first_call import refusal, runnable
from magpy_core.verification.noise import Noisy

_FILLED = {"tuple": tuple, "list": list, "dict": dict}


class Rerun:
    """What the recorded graph gives for ``inputs``, which the program is about to use itself."""

    def __init__(self, trace: Trace, gm: torch.fx.GraphModule, inputs: Sequence[Any]) -> None:
        self._trace, self._gm, self._inputs = trace, gm, inputs
        self._reference = runnable(gm)
        mutated = {id(source) for source in trace.writes.mutated}
        placeholders = [node for node in trace.graph.nodes if node.op == "placeholder"]
        written = {i for i, node in enumerate(placeholders) if id(node.meta.get("magpy_source")) in mutated}
        written |= set(written_positions(gm.graph))
        self._copies = Copies(Copies(inputs, written).made(), written)  # the call changes the inputs
        with preserve_torch_state(), no_warnings():
            self._streams = random_streams()
            self._found = self._run(None)
            self._after = random_streams()

    def difference(self, result: Any, *, strict: bool) -> tuple[Difference, torch.fx.Node | None] | None:
        """What the program has computed otherwise, and the operation. ``result``: of its call."""
        if not self._trace.draws and not same_streams(self._after, random_streams()):
            return Difference("the random state", "is another one after the call"), None
        shown = {
            f"result {self._trace.plan.outputs.index(n)}": value for n, value in _pairs(self._trace.plan.result, result)
        }
        plain = shown | {f"written input {i}": self._inputs[i] for i in self._copies.written}

        def noisy(seed: int) -> Values:
            restore_streams(self._streams)
            return self._only(plain, self._run(Noisy(self._gm, seed)))

        program, graph = Values({what: _plain(value) for what, value in plain.items()}), self._only(plain, self._found)
        with preserve_torch_state(), no_warnings():
            found = difference(graph, program, None if strict else noisy)  # the noise is the graph's
            if found is None:
                return None
            theirs, ours = (Values({found.what: one.named[found.what]}) for one in (program, graph))
            found = difference(theirs, ours, None) or found
        return found, self._node(found.what)

    def _run(self, noise: Noisy | None) -> Values:
        inputs = self._copies.made(noise)
        results = list(self._reference.forward(*inputs) if noise is None else noise.run(*inputs))
        named = {f"result {i}": value for i, value in enumerate(results)}
        return Values(named | {f"written input {i}": inputs[i] for i in self._copies.written})

    @staticmethod
    def _only(wanted: dict[str, Any], values: Values) -> Values:
        """What a call returns of them; the others have gone elsewhere."""
        return Values({what: _plain(value) for what, value in values.named.items() if what in wanted})

    def _node(self, what: str) -> torch.fx.Node | None:
        kind, _, number = what.rpartition(" ")
        return self._trace.plan.outputs[int(number)] if kind == "result" else None


def rerun(trace: Trace, gm: torch.fx.GraphModule, inputs: Sequence[Any]) -> Rerun | None:
    """Runs ``gm``, the whole graph of ``trace``; None if it can't run once more."""
    placeholders = [node for node in gm.graph.nodes if node.op == "placeholder"]
    if trace.plan.raises or len(placeholders) != len(inputs) or refusal(gm, inputs):
        return None
    try:
        return Rerun(trace, gm, inputs)
    except Exception:  # of the graph itself, which then raises in the program's call, too; or too little memory
        return None


def _plain(value: Any) -> Any:
    return value.detach() if isinstance(value, torch.Tensor) else value


def _pairs(expression: Any, value: Any, seen: frozenset[int] = frozenset()) -> Iterator[tuple[torch.fx.Node, Any]]:
    """The graph's values in what a call returns, and the program's."""
    if isinstance(expression, GraphValue) and isinstance(value, torch.Tensor):
        yield expression.node, value
    if not isinstance(expression, Build) or id(expression) in seen:
        return
    seen |= {id(expression)}
    if expression.how in _FILLED and isinstance(value, _FILLED[expression.how]):
        if expression.how == "dict":
            pairs = zip((item for _, item in expression.items), dict.values(value), strict=False)
        else:
            pairs = zip(expression.items, value, strict=False)
        for item, held in pairs:
            yield from _pairs(item, held, seen)
    attributes = instance_dict(value) or {}
    for name, item in expression.attrs:
        if name in attributes:
            yield from _pairs(item, attributes[name], seen)
