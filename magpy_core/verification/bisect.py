"""Traces a difference to the operations that cause it, and writes a file that reproduces it. Key function: bisect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.fx

from magpy_core.backends import get_backend
from magpy_core.backends.fakes import make_fake_inputs
from magpy_core.verification import reproducer
from magpy_core.verification.first_call import check
from magpy_core.verification.smallest import Part, smallest_part

_SHOWN = 4


def bisect(gm: torch.fx.GraphModule, inputs: Sequence[Any], folder: Path) -> str:
    """What is found about compiled code of ``gm`` that differs for ``inputs``: a sentence or more, for a finding."""
    try:
        part = smallest_part(gm, inputs, lambda graph, given: _compiled("inductor", graph, given))
        if part is None:
            return "Its operations, compiled one after the other, do not differ: please report it to MagPy."
        return f"{_named(part)} {_blamed(part)} {_reproduced(part, folder)}"
    except Exception as error:  # of the graph, when it runs operator by operator, or of a compiler
        return f"Its operations could not be told apart ({type(error).__name__}: {str(error)[:160]})."


def _compiled(backend: str, gm: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[[list[Any]], Any]:
    compiled = get_backend(backend).compile(gm, make_fake_inputs(inputs), same_random=True)
    fn = compiled.fn
    return compiled.boxed or (lambda given: fn(*given))


def _named(part: Part) -> str:
    names = list(dict.fromkeys(part.operations))
    shown = ", ".join(f"`{name}`" for name in names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
    count = len(part.operations)
    where = f", from {', '.join(part.lines[:_SHOWN])}" if part.lines else ""
    return f"The smallest part that differs has {count:,} of {part.of:,} operations: {shown}{where}."


def _differs(part: Part, backend: str, inputs: Sequence[Any]) -> bool:
    code = _compiled(backend, part.graph, inputs)
    return check(part.graph, code, inputs, part.written, same_random=True).difference is not None


def _blamed(part: Part) -> str:
    """Whose mistake it is: AOTAutograd's, which runs the part operator by operator, or Inductor's."""
    if _differs(part, "aot_eager", part.inputs):
        return "It differs without Inductor, too: a decomposition of torch's is wrong."
    return "Without Inductor, it does not differ: Inductor's code is wrong."


def _reproduced(part: Part, folder: Path) -> str:
    try:
        written = reproducer.write(part, folder, lambda inputs: _differs(part, "inductor", inputs))
    except OSError as error:
        return f"No file could be written: {error}."
    data = " (with tensors of this program)" if written.has_data else ""
    if written.is_confirmed:
        return f"`{written.path}`{data} shows it with torch alone: attach it to a report to PyTorch."
    return f"`{written.path}`{data} does not show it with torch alone: attach it to a report to MagPy."
