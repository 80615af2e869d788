"""Captures programs, runs their kernels by Triton's interpreter, and compares with eager mode. Key type: Result.

``TRITON_INTERPRET=1 python -m tests.programs.kernels.run [--plant RIGHT WRONG] GROUP[.PROGRAM]...`` prints a line of JSON
for each. ``--plant``: replaces this text in the kernels.
"""

from __future__ import annotations

import argparse
import functools
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

import magpy_core
from magpy_core.capture.build import Capture
from magpy_core.products.targets.lowering import LoweredSegment, lowered_segments
from tests.programs.kernels import interpreter
from tests.programs.kernels.program import Case, Numbers, Program, programs_of

TARGET = "cuda:sm_90"


@dataclass
class Result:
    """``error``: why the kernels did not run; ``differences``: from eager mode; ``kernels``: what ran, in order."""

    name: str
    error: str = ""
    differences: list[str] = field(default_factory=list)
    kernels: list[str] = field(default_factory=list)
    seconds: float = 0.0


@dataclass
class _Ready:
    """A program that has been captured. ``expected``: of the compared call in eager mode."""

    program: Program
    case: Case
    region: Callable[..., Any]
    capture: Capture
    expected: Numbers


def run(programs: list[Program]) -> Iterator[Result]:
    """All are captured first: later, torch in this process is that of the target."""
    ready = [_captured(program) for program in programs]
    interpreter.prepare(TARGET)
    for each in ready:
        start = time.perf_counter()
        result = _interpreted(each)
        result.seconds = round(time.perf_counter() - start, 1)
        yield result


def _captured(program: Program) -> _Ready:
    eager = _made(program)
    for call in range(program.warm + 1):
        expected = _numbers(eager.region, eager, call)
    case = _made(program)
    region = magpy_core.compile(case.region, wait=True)
    for call in range(program.warm):
        _numbers(region, case, call)
    captures = magpy_core.captures(region)
    assert captures and not any(capture.hits for capture in captures), f"{program.name} is not captured"
    return _Ready(program, case, region, captures[0], expected)


def _made(program: Program) -> Case:
    torch.manual_seed(0)
    return program.make()


def _interpreted(ready: _Ready) -> Result:
    program, result = ready.program, Result(ready.program.name)
    interpreter.LAUNCHES.clear()
    try:
        with interpreter.device():
            segments = lowered_segments(ready.capture, combined=program.combined, load=interpreter.load)
        for index, segment in segments.items():
            ready.capture.namespace[f"graph{index}"] = functools.partial(_called, segment, result)
        found = _numbers(ready.region, ready.case, program.warm)
    except Exception as error:  # the test says which program, and what was raised
        result.error = f"{type(error).__name__}: {error}"
        return result
    result.kernels += interpreter.LAUNCHES
    if result.error:
        return result
    if ready.capture.hits != 1:
        result.error = "the capture did not serve the call"
    elif not result.kernels:
        result.error = "no kernel has run"
    elif program.check is None:
        result.differences += _differences(ready.expected, found, *program.tolerance)
    elif problem := program.check(found):
        result.differences.append(problem)
    return result


def _called(segment: LoweredSegment, result: Result, inputs: list[Any]) -> Any:
    try:
        return segment.fn(*inputs)
    except Exception as error:  # the engine would run the call in eager mode
        result.error = f"{type(error).__name__}: {error}"
        raise


def _numbers(region: Callable[..., Any], case: Case, call: int) -> dict[str, torch.Tensor]:
    """Of one call, with a backward pass if its results have gradients."""
    torch.manual_seed(100 + call)
    args = case.args(call)
    torch.manual_seed(200 + call)
    results = [leaf for leaf in pytree.tree_leaves(region(*args)) if isinstance(leaf, torch.Tensor)]
    differentiable = [each for each in results if each.requires_grad and each.grad_fn is not None]
    if differentiable:
        weights = torch.Generator().manual_seed(300 + call)
        seeds = [torch.randn(each.shape, generator=weights).to(each.dtype) for each in differentiable]
        torch.autograd.backward(differentiable, seeds)
    given = [leaf for leaf in pytree.tree_leaves(args) if isinstance(leaf, torch.Tensor)]
    tensors = {f"result {i}": each for i, each in enumerate(results)} | {f"argument {i}": t for i, t in enumerate(given)}
    for name, held in case.state.items():
        parts = held.state_dict(keep_vars=True) if isinstance(held, nn.Module) else {"": held}
        tensors |= {f"{name} {part}".strip(): tensor for part, tensor in parts.items()}
    gradients = {f"gradient of {name}": t.grad for name, t in tensors.items() if t.is_leaf and t.grad is not None}
    return {name: each.detach().clone() for name, each in (tensors | gradients).items()}


def _differences(expected: Numbers, found: Numbers, relative: float, absolute: float) -> Iterator[str]:
    if expected.keys() != found.keys():
        yield f"only in one run: {sorted(expected.keys() ^ found.keys())}"
    for name in (name for name in expected if name in found):
        try:
            torch.testing.assert_close(found[name], expected[name], rtol=relative, atol=absolute, equal_nan=True)
            assert found[name].stride() == expected[name].stride(), "the strides differ"
        except AssertionError as error:
            yield f"{name}: {' '.join(str(error).split())}"


def chosen(names: Sequence[str]) -> list[Program]:
    """The programs of ``GROUP`` or ``GROUP.PROGRAM``."""
    found: list[Program] = []
    for name in names:
        group, _, one = name.partition(".")
        known = programs_of(group)
        found += [known[one]] if one else known.values()
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--plant", nargs=2, action="append", default=[])
    parser.add_argument("names", nargs="+")
    options = parser.parse_args()
    interpreter.PLANTED.update(options.plant)
    for result in run(chosen(options.names)):
        print(json.dumps(asdict(result)), flush=True)


if __name__ == "__main__":
    main()
