"""Runs cases in eager mode, by torch.compile and by MagPy. Key functions: by_torch_compile, by_magpy, by_bisect."""

from __future__ import annotations

import contextlib
import types
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree

import magpy_core
from magpy_core.regions.api import region_of
from magpy_core.verification import Plan
from tests.soundness.torch_issues.case import Case, Compiled, Ours


@dataclass(frozen=True)
class Raised:
    """Instead of a result."""

    kind: str
    message: str


def by_torch_compile(case: Case) -> tuple[Compiled, str]:
    """What torch.compile gives, and how it differs from eager mode."""
    torch._dynamo.reset()
    expected = _observed(case, lambda function: function)
    found = _observed(case, torch.compile)
    for want, got in zip(expected, found, strict=True):
        if isinstance(got, Raised):  # not silently
            if isinstance(want, Raised):
                continue
            return "raises", f"{got.kind}: {got.message}"
        if text := differing(want, got):
            return "wrong", text
    return "right", ""


def by_magpy(case: Case) -> tuple[Ours | None, str]:
    """What MagPy gives, and its findings; None if a result is wrong: then how it differs."""
    text, region = _compiled_by_magpy(case, "first")
    codes = {finding.code: finding.message for finding in region.findings.values()}
    if text:
        strictly, region = _compiled_by_magpy(case, "strict")
        is_found = not strictly and any(finding.code == "MP914" for finding in region.findings.values())
        return ("rounding" if is_found and "MP914" not in codes else None), f"{text} {codes}"
    if "MP914" in codes:
        return "found", codes["MP914"]
    return ("right", "") if region.hits else ("eager", str(codes))


def by_bisect(case: Case, folder: Path) -> dict[str, str]:
    """What ``magpy-lsp bisect`` says of the difference: the ``operations`` of the smallest part that differs, who is ``at
    fault``, and whether the file in ``folder`` shows it with torch ``alone``. Empty: no difference was found."""
    _, region = _compiled_by_magpy(case, f"bisect:{folder}")
    for finding in region.findings.values():
        if finding.code == "MP914":
            values = {value.name: value.repr for value in finding.values}
            alone = "yes" if "shows it with torch alone" in finding.hint else "no"
            return {"operations": values.get("operations", ""), "at fault": values.get("at fault", ""), "alone": alone}
    return {}


def _compiled_by_magpy(case: Case, plan: str) -> tuple[str, Any]:
    """How the first wrong result differs (empty: all are right), and the region."""
    compiled: list[Any] = []

    def make(function: Callable[..., Any]) -> Any:
        compiled.append(magpy_core.compile(function, wait=True))
        region_of(compiled[0]).options.verify = Plan.parse(plan)
        return compiled[0]

    found, expected = _observed(case, make), _observed(case, lambda function: function)
    texts = [differing(want, got) for want, got in zip(expected, found, strict=True)]
    return next((f"call {n}: {text}" for n, text in enumerate(texts) if text), ""), region_of(compiled[0])


def _observed(case: Case, compiled: Callable[[Callable[..., Any]], Any]) -> list[Any]:
    with _quiet():
        torch.manual_seed(0)
        function, arguments = case.make()
        called, found = compiled(function), []
        for n in range(case.calls):
            torch.manual_seed(n + 1)
            found.append(_call(called, arguments()))
    return found


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _call(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """The results, the arguments afterwards, and their gradients."""
    try:
        result = function(*arguments)
    except Exception as error:
        return Raised(type(error).__name__, str(error)[:200])
    if isinstance(result, types.GeneratorType) or type(result).__name__.endswith("iterator"):
        result = _exhausted(result)
    roots = [one for one in pytree.tree_leaves(result) if isinstance(one, torch.Tensor) and one.requires_grad]
    leaves = [one for one in arguments if isinstance(one, torch.Tensor) and one.requires_grad]
    gradients: Any = ()
    if roots and leaves:
        starts = [torch.linspace(0.5, 1.5, one.numel(), dtype=one.dtype).view(one.shape) for one in roots]
        gradients = torch.autograd.grad(roots, leaves, starts, allow_unused=True)
    return pytree.tree_map_only(torch.Tensor, _kept, (result, arguments, gradients, [one.requires_grad for one in roots]))


def _exhausted(generator: Any) -> tuple[list[Any], Any]:
    found = []
    while True:
        try:
            found.append(next(generator))
        except StopIteration as end:
            return found, end.value


def _kept(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().clone()


def differing(want: Any, got: Any) -> str:
    """How two observations differ by more than rounding explains; empty if they do not."""
    if isinstance(want, Raised) or isinstance(got, Raised):
        same = isinstance(want, Raised) and isinstance(got, Raised) and want.kind == got.kind
        return "" if same else f"eager mode: {want if isinstance(want, Raised) else 'a result'}, not {got}"
    (a, spec), (b, other) = pytree.tree_flatten(want), pytree.tree_flatten(got)
    if spec != other:
        return f"another structure: {other}"
    return next((text for x, y in zip(a, b, strict=True) if (text := _leaf(x, y))), "")


def _leaf(x: Any, y: Any) -> str:
    if isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor):
        try:
            kinds = [(one.dtype, tuple(one.shape)) for one in (x, y)]
            if kinds[0] != kinds[1]:
                return f"{kinds[1]}, not {kinds[0]}"
            torch.testing.assert_close(y, x, rtol=_tolerance(x), atol=1e-6 * _scale(x), equal_nan=True)
        except AssertionError as error:
            return " ".join(str(error).split())[:200]
        return ""
    return "" if type(x) is type(y) and x == y else f"{y!r}, not {x!r}"


def _tolerance(x: torch.Tensor) -> float:
    return {torch.float16: 2e-3, torch.bfloat16: 2e-2}.get(x.dtype, 1e-4) if x.is_floating_point() or x.is_complex() else 0.0


def _scale(x: torch.Tensor) -> float:
    if not (x.is_floating_point() or x.is_complex()):
        return 0.0
    values = x.detach().abs().double()
    finite = values[torch.isfinite(values)]
    return float(finite.max()) if finite.numel() else 0.0
