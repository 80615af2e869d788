"""What compilers are known to make something else of, where the recording tells. Key functions: `compiled_wrongly`,
`doubtful_results`, `mark_uncounted_writes`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from magpy_core._compat.torch.tensor_guards import no_torch_function, storage_key, version_of
from magpy_core.backends.calling import UNCOUNTED
from magpy_core.recording.recording import Recorded
from magpy_core.refgraph.kinds import is_a

_COMPLEX = "A complex result takes part in autograd: its gradient may be a conjugate view."
_VIEW = "In inference mode, a view of a tensor from outside it leaves the region, which compiled is a tensor of that mode."


def doubtful_results(backend: str, recorded: Recorded) -> dict[torch.fx.Node, str]:
    """Why the values of some nodes may not be a compiled graph's results; none under the backend that compiles nothing."""
    if backend == "eager":
        return {}
    ops = recorded.recording.ops
    with no_torch_function():
        found = {node: _COMPLEX for t, node in ops.values.values() if t.is_complex() and t.requires_grad}
        if torch.is_inference_mode_enabled():
            outside = {storage_key(t) for _, _, t in ops.inputs if not t.is_inference()}
            found |= {n: _VIEW for t, n in ops.values.values() if n.op != "placeholder" and storage_key(t) in outside}
    return found


def mark_uncounted_writes(recorded: Recorded) -> None:
    """Marks the placeholders of inputs that were written though their version counters stayed: running statistics, and
    what is written through ``.data``."""
    ops = recorded.recording.ops
    with no_torch_function():
        counted = {storage_key(t) for n, _, t in ops.inputs if version_of(t) != n.meta["magpy_version"]}
        for node, _, tensor in ops.inputs:
            known = version_of(tensor) is not None
            if known and id(tensor) in ops.mutated and storage_key(tensor) not in counted:
                node.meta[UNCOUNTED] = True


def compiled_wrongly(
    backend: str, inputs: Sequence[Any], outputs: Sequence[Any], doubtful: Mapping[torch.fx.Node, str], recorded: Recorded
) -> str | None:
    """Why a compiler would make something else of a graph with these inputs; None where nothing is known."""
    if backend == "eager":
        return None
    with no_torch_function():  # a subclass of the program's is not asked
        reversed_inputs = any(is_a(v, torch.Tensor) and (v.is_neg() or v.is_conj()) for v in inputs)
    if reversed_inputs:
        return "An input is a conjugate or negative view: kernels take its memory as it is."
    if (reason := next((doubtful[node] for node in outputs if node in doubtful), None)) is not None:
        return reason
    if backend == "inductor" and recorded.recording.with_history:  # it saves what the input was as the input itself
        return f"Autograd takes note of a write to `{min(recorded.recording.with_history)}`: its backward pass would raise."
    return None
