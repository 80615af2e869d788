"""Converts between Python numbers and the 0-d tensors of a lowered graph. Key function: `adapt`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from magpy_core.backends.lowering import Lowered


def is_identity(lowered: Lowered, arity: int) -> bool:
    """Whether the lowered graph can be called like the original: without numbers as inputs or outputs."""
    direct = [(i, None) for i in range(arity)]
    return lowered.inputs == direct and lowered.outputs == [("graph", i) for i in range(len(lowered.outputs))]


def adapt(
    lowered: Lowered,
    arity: int,
    fn: Callable[..., Sequence[Any]],
    boxed: Callable[[list[Any]], Sequence[Any]] | None,
) -> Callable[..., Sequence[Any]]:
    """``fn`` with the original graph's calling convention.

    Generated as source code, because interpreting a plan at each call would be slower than the call.
    """
    names = [f"a{i}" for i in range(arity)]
    space: dict[str, Any] = {"inner": boxed or fn, "T": torch.scalar_tensor}
    passed = []
    for index, dtype in lowered.inputs:
        if dtype is None:
            passed.append(names[index])
        else:
            space[str(dtype).removeprefix("torch.")] = dtype
            passed.append(f"T({names[index]}, dtype={str(dtype).removeprefix('torch.')}, device='cpu')")
    arguments = ", ".join(passed)
    call = f"inner([{arguments}])" if boxed is not None else f"inner({arguments})"
    lines = [f"def fn({', '.join(names)}):"]
    if lowered.outputs == [("graph", i) for i in range(len(lowered.outputs))]:
        lines.append(f"    return {call}")
    else:
        lines.append(f"    out = {call}")
        parts = []
        for position, (kind, what) in enumerate(lowered.outputs):
            if kind == "constant":
                space[f"c{position}"] = what
            parts.append({"graph": f"out[{what}]", "item": f"out[{what}].item()", "constant": f"c{position}"}[kind])
        lines.append(f"    return ({', '.join(parts)}{',' if parts else ''})")
    exec(compile("\n".join(lines), "<magpy scalar inputs>", "exec"), space)
    adapted: Callable[..., Sequence[Any]] = space["fn"]
    return adapted
