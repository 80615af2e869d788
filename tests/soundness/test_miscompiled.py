"""Bugs that are planted in the compiler are found in the first call, and results are those of eager mode."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import magpy_core
from magpy_core.regions.api import region_of
from tests.soundness.miscompiled import BUGS, TARGETS, Bug, Target, planted

pytestmark = pytest.mark.slow


def outcome(target: Target, calls: int = 4, *, compiled: bool = True, **options: Any) -> tuple[list[torch.Tensor], set[str]]:
    """The results of all calls and the state that the target keeps, and the codes of the findings."""
    function, arguments = target.make()
    state = [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
    called: Any = magpy_core.compile(function, wait=True, same_random=True, **options) if compiled else function
    found = []
    for _ in range(calls):
        result = called(*arguments)
        found.append(result.detach().clone())
        if result.requires_grad:
            gradients = torch.autograd.grad(result.square().sum(), list(called.parameters()))
            found += gradients
    found += [one.clone() for one in state if isinstance(one, torch.Tensor)]
    found += [p.detach().clone() for one in state if isinstance(one, torch.nn.Module) for p in one.parameters()]
    return found, {finding.code for finding in region_of(called).findings.values()} if compiled else set()


def is_found(target: Target, bug: Bug, graph: int) -> bool | None:
    """Whether the bug in graph number ``graph`` is found; None: it can't be planted there, or it changes no result. Results
    are those of eager mode wherever it is found."""
    with planted(bug, graph=graph) as applied:
        results, codes = outcome(target)
    if len(applied) <= graph:
        return None
    expected, _ = outcome(target, compiled=False)
    same = all(torch.allclose(a, b, rtol=1e-5, atol=1e-6) for a, b in zip(results, expected, strict=True))
    assert same or "MP914" not in codes, (target.name, bug.name)
    return True if "MP914" in codes else None if same else False


@pytest.mark.parametrize("target", TARGETS, ids=lambda one: one.name)
def test_without_bugs_nothing_is_found(target: Target) -> None:
    results, codes = outcome(target)
    assert "MP914" not in codes
    expected, _ = outcome(target, compiled=False)
    for result, wanted in zip(results, expected, strict=True):
        torch.testing.assert_close(result, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("target", TARGETS, ids=lambda one: one.name)
def test_planted_bugs_are_found(target: Target) -> None:
    cases = [(bug, 0) for bug in BUGS if bug.name not in target.without]
    cases += [(bug, 1) for bug in BUGS if bug.name in target.backward]
    assert len(cases) >= 10
    assert [f"{bug.name}, graph {graph}" for bug, graph in cases if not is_found(target, bug, graph)] == []


def test_without_verification_a_bug_is_a_wrong_result() -> None:
    """The bugs are real."""
    target = next(one for one in TARGETS if one.name == "buffers")
    bug = next(one for one in BUGS if one.name == "a write is lost")
    with planted(bug):
        results, codes = outcome(target, verify=False)
    expected, _ = outcome(target, compiled=False)
    assert "MP914" not in codes
    assert not all(torch.allclose(a, b, rtol=1e-5, atol=1e-6) for a, b in zip(results, expected, strict=True))
