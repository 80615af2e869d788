"""Traces a difference to the operations that cause it, and writes a file that reproduces it. Key function: bisect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch.fx

from magpy_core.backends import get_backend
from magpy_core.backends.fakes import make_fake_inputs
from magpy_core.verification import reproducer
from magpy_core.verification.cause import SHOWN, Cause, Fault
from magpy_core.verification.first_call import check
from magpy_core.verification.reproducer import Reproducer
from magpy_core.verification.smallest import Part, smallest_part

_BLAME: dict[Fault, str] = {
    "Inductor": "Without Inductor, it does not differ: Inductor's code is wrong.",
    "a decomposition of torch": "It differs without Inductor, too: a decomposition of torch's is wrong.",
    "MagPy": "It has an operator of MagPy's own: please report it to MagPy.",
}
_OWN = "magpy."  # the namespace of MagPy's operators


def bisect(
    gm: torch.fx.GraphModule,
    inputs: Sequence[Any],
    folder: Path,
    on_progress: Callable[[Cause], object] = lambda cause: None,
) -> Cause:
    """Why compiled code of ``gm`` differs for ``inputs``. ``on_progress``: called with what is known so far."""

    def smaller(part: Part) -> None:
        on_progress(_of_part(part, f"The smallest part that is known to differ {_named(part)}."))

    try:
        part = smallest_part(gm, inputs, lambda graph, given: compiled_by("inductor", graph, given), smaller)
        if part is None:
            return _of_whole(gm, inputs)
        found = _of_part(part, f"The smallest part that differs {_named(part)}.")
        on_progress(found)
        written, text = _written(part, folder)
        if written is not None:
            found = replace(found, reproducer=str(written.path))
            on_progress(replace(found, text=f"{found.text} `{written.path}` has it."))
        fault = _fault(part)
        found = replace(found, text=f"{found.text} {_BLAME[fault]}", fault=fault)
        on_progress(found if written is None else replace(found, text=f"{found.text} `{written.path}` has it."))
        return replace(found, text=f"{found.text} {text if written is None else _confirmed(written)}")
    except Exception as error:  # of the graph, when it runs operator by operator, or of a compiler
        return Cause(f"Its operations could not be told apart ({type(error).__name__}: {str(error)[:160]}).")


def _fault(part: Part) -> Fault:
    if any(name.startswith(_OWN) for name in part.operations):
        return "MagPy"
    return "a decomposition of torch" if _differs(part, "aot_eager", part.inputs) else "Inductor"


def _of_part(part: Part, text: str) -> Cause:
    largest = None if part.difference is None else part.difference.largest
    return Cause(text, tuple(part.operations), largest)


def _of_whole(gm: torch.fx.GraphModule, inputs: Sequence[Any]) -> Cause:
    """No stretch of its operations differs when it is compiled alone, without gradients."""
    parts = "Its operations, compiled one after the other, do not differ"
    code = compiled_by("inductor", gm, inputs)
    if check(gm, code, inputs, (), same_random=True).difference is None:
        return Cause(f"{parts}, nor does the graph, compiled once more: `magpy-lsp bisect` compares later calls.")
    without = compiled_by("aot_eager", gm, inputs)
    if check(gm, without, inputs, (), same_random=True).difference is not None:
        return Cause(
            f"{parts}, but the whole graph does, and without Inductor, too: how torch's AOTAutograd treats views, writes "
            "or gradients is wrong, or what MagPy gives it."
        )
    return Cause(
        f"{parts}, but the whole graph does: Inductor's code for all of it is wrong, or how MagPy has prepared it. Please "
        "report it to MagPy."
    )


def compiled_by(backend: str, gm: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[[list[Any]], Any]:
    compiled = get_backend(backend).compile(gm, make_fake_inputs(inputs), same_random=True)
    fn = compiled.fn
    return compiled.boxed or (lambda given: fn(*given))


def _differs(part: Part, backend: str, inputs: Sequence[Any]) -> bool:
    code = compiled_by(backend, part.graph, inputs)
    return check(part.graph, code, inputs, part.written, same_random=True).difference is not None


def _written(part: Part, folder: Path) -> tuple[Reproducer | None, str]:
    """The file; or None, and why there is none."""
    try:
        return reproducer.write(part, folder, lambda inputs: _differs(part, "inductor", inputs)), ""
    except OSError as error:
        return None, f"No file could be written: {error}."


def _confirmed(written: Reproducer) -> str:
    data = " (with tensors of this program)" if written.has_data else ""
    if written.is_confirmed():
        return f"`{written.path}`{data} shows it with torch alone: attach it to a report to PyTorch."
    return f"`{written.path}`{data} does not show it with torch alone: attach it to a report to MagPy."


def _named(part: Part) -> str:
    """``has 1 of 40 operations: `aten.tanh.default`, from train.py:12``: of a part."""
    names = list(dict.fromkeys(part.operations))
    shown = ", ".join(f"`{name}`" for name in names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")
    where = f", from {', '.join(part.lines[:SHOWN])}" if part.lines else ""
    return f"has {len(part.operations):,} of {part.of:,} operations: {shown}{where}"
