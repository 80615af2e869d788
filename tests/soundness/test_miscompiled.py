"""Bugs that are planted in the compiler are found in the first call, and results are those of eager mode."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._inductor import config
from torch._inductor.custom_graph_pass import CustomGraphPass

import magpy_core
from magpy_core.backends import stored
from magpy_core.regions.api import region_of
from magpy_core.regions.reports.summary import summarise
from magpy_core.verification import Plan
from tests.soundness.miscompiled import BUGS, TARGETS, Bug, Target, planted

pytestmark = pytest.mark.slow
#: Operations in the smallest part that shows a planted bug: a write and its reader are several.
MOST_LOCATED = 4


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


class Identity(CustomGraphPass):
    """A compiler that takes `abs` for nothing: right until a number is negative."""

    def __call__(self, graph: torch.fx.Graph) -> None:
        for node in list(graph.nodes):
            if node.target is torch.ops.aten.abs.default:
                node.replace_all_uses_with(node.args[0])
                graph.erase_node(node)

    def uuid(self) -> None:
        return None


def test_a_bug_that_shows_later_is_found_in_a_later_call() -> None:
    total = torch.zeros(8)

    def step(x: torch.Tensor) -> torch.Tensor:
        total.add_(x.abs() * 3)
        return total.sum()

    compiled: Any = magpy_core.compile(step, wait=True)
    region = region_of(compiled)
    region.options.verify = Plan.parse("2")
    expected = torch.zeros(8)
    for n in range(12):
        x = torch.rand(8) if n < 6 else -torch.rand(8)
        expected.add_(x.abs() * 3)
        with config.patch(post_grad_custom_post_pass=Identity()):
            result = compiled(x)
        if n == 6:  # a call that was not compared
            total.copy_(expected)
        else:
            assert torch.allclose(result, expected.sum()) and torch.allclose(total, expected), n
    (finding,) = (one for one in region.findings.values() if one.code == "MP914")
    assert "Compiled code gives another value than eager mode" in finding.message
    assert "earlier calls that were not compared may have been wrong" in finding.message, "as one was"
    samples = summarise(region).samples
    assert [one.is_difference for one in samples] == [False] * (len(samples) - 1) + [True] and len(samples) >= 2
    assert region.disabled and samples[-1].apart > 0.1 > 1e-6 > samples[0].apart
    assert samples[0].loss == pytest.approx(samples[0].compiled_loss) and samples[0].loss, "the sum is its only number"
    assert samples[-1].loss != pytest.approx(samples[-1].compiled_loss)


@pytest.mark.timeout(600)
def test_a_difference_is_traced_to_its_operations(tmp_path: Path) -> None:
    """Of a whole step with its backward pass and its optimizer, by a compiler that drops an activation."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.Tanh(), torch.nn.Linear(16, 4))
    optimizer = torch.optim.AdamW(net.parameters())

    def step(x: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    compiled: Any = magpy_core.compile(step, wait=True)
    region = region_of(compiled)
    region.options.verify = Plan.parse(f"bisect:{tmp_path}")
    bug = next(one for one in BUGS if one.name == "an activation is dropped")
    with planted(bug, graph=None):
        for _ in range(5):
            compiled(torch.randn(8, 16))
    (finding,) = (one for one in region.findings.values() if one.code == "MP914")
    found = re.search(r"The smallest part that differs has (\d+) of (\d+) operations: `aten.tanh.default`", finding.hint)
    assert found is not None and int(found[1]) == 1 and int(found[2]) > 40, finding.hint
    assert "Inductor's code is wrong" in finding.hint and f"{__file__}:" in finding.hint, finding.hint
    (file,) = tmp_path.glob("*.py")
    values = {value.name: value.repr for value in finding.values}
    assert values.pop("largest difference") and values == {
        "operations": "aten.tanh.default", "at fault": "Inductor", "reproducer": str(file),
    }  # fmt: skip
    assert "torch.ops.aten.tanh.default" in file.read_text() and not [*tmp_path.glob("*.pt")]
    assert "does not show it with torch alone" in finding.hint, "the bug is not torch's"


@pytest.mark.exhaustive
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("target", "bug"),
    [
        pytest.param(target, bug, id=f"{target.name}-{bug.name.replace(' ', '_')}")
        for target in TARGETS
        for bug in BUGS
        if bug.name not in target.without
    ],
)
def test_each_planted_bug_is_located(target: Target, bug: Bug, tmp_path: Path) -> None:
    """To one operation, or to the few that differ only together."""
    function, arguments = target.make()
    compiled: Any = magpy_core.compile(function, wait=True, same_random=True)
    region = region_of(compiled)
    region.options.verify = Plan.parse(f"bisect:{tmp_path}")
    with planted(bug, graph=None):
        for _ in range(3):
            compiled(*arguments)
    (finding, *_) = (one for one in region.findings.values() if one.code == "MP914")
    found = re.search(r"The smallest part that differs has (\d+) of (\d+) operations", finding.hint)
    assert found is not None and int(found[1]) <= MOST_LOCATED < int(found[2]), finding.hint
    values = {value.name: value.repr for value in finding.values}
    assert values["operations"] and values["at fault"] == "Inductor" and [*tmp_path.glob("*.py")]


def test_strictly_only_code_that_gives_the_same_bits_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    removed: list[str] = []
    monkeypatch.setattr(stored, "remove", removed.append)
    same: Any = magpy_core.compile(lambda x: torch.relu(x) * 2, wait=True)
    rounded: Any = magpy_core.compile(lambda x: torch.softmax(x.exp() / 3, -1).sum(0), wait=True)
    x = torch.randn(16, 64)
    for function, uses in ((same, True), (rounded, False)):
        region = region_of(function)
        region.options.verify = Plan.parse("strict")
        expected = function.__wrapped__(x) if hasattr(function, "__wrapped__") else None
        for _ in range(3):
            result = function(x)
            assert expected is None or torch.equal(result, expected)
        found = {one.code: one.message for one in region.findings.values()}
        assert ("MP914" in found) is not uses and bool(region.hits) is uses, found
    assert removed == [], "stored code that is right but for rounding serves other runs"


def test_without_verification_a_bug_is_a_wrong_result() -> None:
    """The bugs are real."""
    target = next(one for one in TARGETS if one.name == "buffers")
    bug = next(one for one in BUGS if one.name == "a write is lost")
    with planted(bug):
        results, codes = outcome(target, verify=False)
    expected, _ = outcome(target, compiled=False)
    assert "MP914" not in codes
    assert not all(torch.allclose(a, b, rtol=1e-5, atol=1e-6) for a, b in zip(results, expected, strict=True))
