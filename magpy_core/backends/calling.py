"""Thin functions around compiled graphs.

`adapt` converts between Python numbers and the 0-d tensors of a lowered graph. `keep_versions` restores version counters for
writes that eager doesn't count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from magpy_core._compat.torch.tensor_guards import set_versions

Direct = Callable[..., Sequence[Any]]
Boxed = Callable[[list[Any]], Sequence[Any]]

#: How a lowered graph is called, as in `lowering.Lowered`: for each of its inputs the index of the original input, and the
#: dtype of the tensor to wrap it in, or None; for each result of the original graph, what it is.
Inputs = Sequence[tuple[int, torch.dtype | None]]
Outputs = Sequence[tuple[str, Any]]

#: In the ``meta`` of a placeholder: the graph writes this input, and eager does so without counting the write.
UNCOUNTED = "magpy_uncounted_write"


def is_identity(inputs: Inputs, outputs: Outputs, arity: int) -> bool:
    """Whether the lowered graph can be called like the original: without numbers as inputs or outputs."""
    return [*inputs] == [(i, None) for i in range(arity)] and _are_results(outputs)


def _are_results(outputs: Outputs) -> bool:
    return [*outputs] == [("graph", i) for i in range(len(outputs))]


def adapt(inputs: Inputs, outputs: Outputs, arity: int, fn: Direct, boxed: Boxed | None) -> Direct:
    """``fn`` with the original graph's calling convention.

    Generated as source code, because interpreting a plan at each call would be slower than the call.
    """
    names = [f"a{i}" for i in range(arity)]
    space: dict[str, Any] = {"inner": boxed or fn, "T": torch.scalar_tensor}
    passed = []
    for index, dtype in inputs:
        if dtype is None:
            passed.append(names[index])
        else:
            space[name := str(dtype).removeprefix("torch.")] = dtype
            passed.append(f"T({names[index]}, dtype={name}, device='cpu')")
    arguments = ", ".join(passed)
    call = f"inner([{arguments}])" if boxed is not None else f"inner({arguments})"
    lines = [f"def fn({', '.join(names)}):"]
    if _are_results(outputs):
        lines.append(f"    return {call}")
    else:
        lines.append(f"    out = {call}")
        parts = []
        for position, (kind, what) in enumerate(outputs):
            if kind == "constant":
                space[f"c{position}"] = what
            parts.append({"graph": f"out[{what}]", "item": f"out[{what}].item()", "constant": f"c{position}"}[kind])
        lines.append(f"    return ({', '.join(parts)}{',' if parts else ''})")
    exec(compile("\n".join(lines), "<magpy scalar inputs>", "exec"), space)
    adapted: Direct = space["fn"]
    return adapted


def keep_versions(fn: Direct, boxed: Boxed | None, positions: Sequence[int]) -> tuple[Direct, Boxed | None]:
    """``fn`` and ``boxed``, whose writes to the inputs at ``positions`` leave the version counters as they are.

    In eager mode, batch normalization updates its running statistics this way, so that a module can be called several times
    before a backward pass. A compiled graph copies them back, which increments the version: tensors that an eager call has
    saved for its backward pass would appear to be modified.
    """

    def with_versions(inputs: Sequence[Any], call: Direct, *args: Any) -> Sequence[Any]:
        written = [inputs[i] for i in positions]
        versions = [t._version for t in written]
        try:
            return call(*args)
        finally:
            set_versions(written, versions)

    def keep_boxed(inputs: list[Any]) -> Sequence[Any]:
        return with_versions(inputs, boxed or fn, inputs)

    return lambda *inputs: with_versions(inputs, fn, *inputs), None if boxed is None else keep_boxed
