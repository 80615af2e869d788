"""One function that calls the units of a graph one after the other. Key functions: `join`, `joined`, `parts_of`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch.fx

from magpy_core._compat.torch.fused_adam import fused_adam
from magpy_core.backends.blocks.units import Unit

Boxed = Callable[[list[Any]], Sequence[Any]]

#: The name of torch's kernel for updates in texts.
FUSED_ADAM = "fused_adam"
_PARTS = "magpy_parts"
_FLAT = ".detach().view(-1)"  # a view that counts writes as the tensor does, and has no history


def join(inputs: Sequence[torch.fx.Node], units: Sequence[tuple[Unit, Boxed]], outputs: Sequence[torch.fx.Node]) -> Boxed:
    """A function of a list of ``inputs``, which it empties. The reference to each value is dropped before the last call that
    uses it, so that the call may free it.

    Generated as source code, because interpreting a plan at each call would be slower than the call.
    """
    names = {node: f"a{i}" for i, node in enumerate(inputs)}
    kept = set(outputs)
    last = {node: i for i, (unit, _) in enumerate(units) for node in unit.inputs}
    functions = {id(function): function for _, function in units}
    called = {key: f"f{i}" for i, key in enumerate(functions)}
    lines = ["def joined(inputs):"]
    if names:
        lines.append(f"    {', '.join(names.values())}, = inputs")
    lines.append("    inputs.clear()")
    for i, (unit, function) in enumerate(units):
        given = ", ".join(names[node] + _FLAT * (node in unit.viewed) for node in unit.inputs)
        dropped = ", ".join(names[node] for node in unit.inputs if last[node] == i and node not in kept)
        lines.append(f"    given = [{given}]")
        if dropped:
            lines.append(f"    del {dropped}")
        names |= {node: f"v{i}_{j}" for j, node in enumerate(unit.outputs)}
        results = "".join(f"{names[node]}, " for node in unit.outputs)
        call = f"{called[id(function)]}(given)"
        lines.append(f"    {results}= {call}" if results else f"    {call}")
    lines.append(f"    return [{', '.join(names[node] for node in outputs)}]")
    return joined("\n".join(lines), [*functions.values()])


def joined(text: str, functions: Sequence[Boxed]) -> Boxed:
    """The function of this ``text``, which calls ``functions`` as ``f0``, ``f1`` and so on."""
    space: dict[str, Any] = {FUSED_ADAM: fused_adam} | {f"f{i}": function for i, function in enumerate(functions)}
    exec(compile(text, "<magpy blocks>", "exec"), space)
    made: Boxed = space["joined"]
    setattr(made, _PARTS, (text, tuple(functions)))
    return made


def parts_of(call: Any) -> tuple[str, tuple[Boxed, ...]] | None:
    """The text and the functions that `joined` has made ``call`` of; None if it hasn't."""
    found: tuple[str, tuple[Boxed, ...]] | None = getattr(call, _PARTS, None)
    return found
