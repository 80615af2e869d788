"""A Python file that shows with torch alone that compiled code of a part differs. Key function: write; type: Reproducer."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from magpy_core._compat.torch.tensor_guards import storage_key
from magpy_core.limits import LIMITS
from magpy_core.verification.smallest import Part, explained

_MADE = {True: "torch.randn({size}, dtype={dtype})", False: "torch.randint({low}, {high}, ({size},), dtype={dtype})"}
_RAN_S = 600.0
_TEXT = '''"""Compiled code of this graph gives another result than eager mode (torch {version}).

python {name}   # exit status: 1 if they differ, 0 if they do not

Found in {where}, and made as small as possible: {count} of {of} operations.
"""

import sys

import torch
from torch import device, inf, nan  # noqa: F401  # the graph's code uses them


{function}

def inputs():
    torch.manual_seed(0)
    return {inputs}


def run(function):
    given = inputs()
    torch.manual_seed(0)
{run}

names = {names}
allowed = {allowed}  # what rounding explains, of each of them
options = {{"fallback_random": True}}  # random numbers are eager mode's
eager = run(graph)
compiled = run(torch.compile(graph, fullgraph=True, dynamic=False, options=options))
differs = False


def wide(tensor):
    return torch.view_as_real(tensor).double() if tensor.is_complex() else tensor.double()


for number, (one, other) in enumerate(zip(eager, compiled, strict=True)):
    what = names[number]
{missing}    if (one.dtype, one.shape) != (other.dtype, other.shape):
        print(f"{{what}}: {{other.dtype}} of shape {{[*other.shape]}}, not {{one.dtype}} of shape {{[*one.shape]}}")
        differs = True
        continue
    if not one.numel():
        continue
    one, other = wide(one), wide(other)
    same = (one == other) | (one.isnan() & other.isnan())
    apart = torch.where(same, 0.0, (one - other).abs()).max().item()
    print(f"{{what}}: largest difference {{apart:.3g}}, largest element {{one.abs().max().item():.3g}}")
    differs = differs or not apart <= allowed[number]
print("they differ" if differs else "they do not differ")
sys.exit(int(differs))
'''
_RUN = "    return [*function(*given), *given]\n"
_RUN_WITH_GRADIENTS = """    results = [*function(*given)]
    leaves = [one for one in given if one.requires_grad]
    roots = [one for one in results if one.requires_grad]
    torch.manual_seed(1)
    starts = [torch.randn_like(one) for one in roots]
    gradients = torch.autograd.grad(roots, leaves, starts, allow_unused=True) if roots else [None] * len(leaves)
    return [*results, *given, *gradients]
"""
_MISSING = """    if one is None or other is None:
        print(f"{what}: " + ("none" if one is other else "none by compiled code" if other is None else "none in eager mode"))
        differs = differs or one is not other
        continue
"""


@dataclass(frozen=True)
class Reproducer:
    """``has_data``: beside it lies a file with the program's own tensors, because random ones do not show it."""

    path: Path
    has_data: bool

    def is_confirmed(self) -> bool:
        """Whether the file says that they differ, in a process without MagPy."""
        return _is_confirmed(self.path)


def write(part: Part, folder: Path, differs: Callable[[Sequence[Any]], bool]) -> Reproducer:
    """``differs``: whether compiled code of the part differs for such inputs. Raises OSError: also if the program's tensors,
    which would have to be saved, are too large."""
    folder.mkdir(parents=True, exist_ok=True)
    path = _free(folder)
    memory = [storage_key(value) for value in part.inputs]
    leaves = [i for i, value in enumerate(part.inputs) if value.requires_grad]
    names = [f"result {i}" for i in range(len(part.graph.graph.output_node().args[0]))]  # type: ignore[arg-type]
    names += [f"input {i}, after the call" for i in range(len(memory))] + [f"gradient of input {i}" for i in leaves]
    made = None if len(set(memory)) < len(memory) else _random(part.inputs)
    if made is not None and differs(made):
        inputs = _described(part.inputs)
    else:
        made = None
        size = sum({storage_key(value): value.untyped_storage().nbytes() for value in part.inputs}.values())
        if size > LIMITS.reproducer_bytes:
            raise OSError(f"the tensors that it takes have {size / 2**20:,.0f} MiB")
        torch.save([value.detach() for value in part.inputs], path.with_suffix(".pt"))
        inputs = f'torch.load(__file__.removesuffix(".py") + ".pt", weights_only=True)  # of {len(memory)} tensors'
        if leaves:
            inputs = f"""[
        one.requires_grad_(number in {leaves})
        for number, one in enumerate(torch.load(__file__.removesuffix(".py") + ".pt", weights_only=True))
    ]"""
    path.write_text(
        _TEXT.format(
            version=torch.__version__,
            name=path.name,
            where=", ".join(part.lines) or "a program",
            count=len(part.operations),
            of=part.of,
            function=_function(part),
            inputs=inputs,
            run=_RUN_WITH_GRADIENTS if leaves else _RUN,
            missing=_MISSING if leaves else "",
            names=names,
            allowed=[float(f"{one:.3g}") for one in explained(part.graph, made or part.inputs)],
        ),
        encoding="utf-8",
    )
    return Reproducer(path, has_data=path.with_suffix(".pt").exists())


def _free(folder: Path) -> Path:
    number = 1
    while (path := folder / f"difference-{number}.py").exists():
        number += 1
    return path


def _function(part: Part) -> str:
    """The graph as a function of its inputs."""
    source = part.graph.graph.python_code("self").src.strip()
    return source.replace("def forward(self, ", "def graph(", 1).replace("def forward(self)", "def graph()", 1) + "\n"


def _described(tensors: Sequence[torch.Tensor]) -> str:
    lines = [f"        {_made(value)}," for value in tensors]
    return "\n".join(["[", *lines, "    ]"])


def _made(value: torch.Tensor) -> str:
    """An expression that gives a tensor like it, with random elements."""
    size = 1 + sum((n - 1) * s for n, s in zip(value.shape, value.stride(), strict=True)) if value.numel() else 0
    if value.dtype.is_floating_point or value.dtype.is_complex:
        text = _MADE[True].format(size=size, dtype=value.dtype)
    elif value.dtype is torch.bool:
        text = f"(torch.rand({size}) > 0.5)"
    else:
        low, high = (int(value.min()), int(value.max())) if value.numel() else (0, 0)
        text = _MADE[False].format(low=low, high=high + 1, size=size, dtype=value.dtype)
    leaf = ".requires_grad_()" if value.requires_grad else ""
    return f"{text}.as_strided({tuple(value.shape)}, {tuple(value.stride())}){leaf}"


def _random(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor] | None:
    """What the file's expressions give; None if they are no plain tensors in memory."""
    if any(value.layout is not torch.strided or value.device.type != "cpu" for value in tensors):
        return None
    if any(value.is_floating_point() and value.dtype.itemsize == 1 for value in tensors):
        return None  # torch has no random numbers of these types
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        found: list[torch.Tensor] = eval(_described(tensors), {"torch": torch})
    return found


def _is_confirmed(path: Path) -> bool:
    env = {name: value for name, value in os.environ.items() if not name.startswith("MAGPY_")}
    try:
        done = subprocess.run(
            [sys.executable, str(path)], env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=_RAN_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 1 and b"they differ" in done.stdout
