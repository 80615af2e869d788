"""Paths are explored before whole calls are compiled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

import magpy_core
from magpy_core.backends import background, get_backend
from magpy_core.capture import graphs
from magpy_core.regions.api import region_of
from magpy_core.regions.budget.budget import Budget
from magpy_core.regions.region import Region
from magpy_core.regions.session import Session
from tests.soundness.harness.cuts import without_trials


@pytest.fixture(autouse=True)
def no_inductor(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """AOTAutograd in place of Inductor, which takes long. Yields the numbers of operators of what is compiled."""
    compiled: list[int] = []

    class Stub:
        def compile(self, gm: torch.fx.GraphModule, inputs: Any, **options: Any) -> Any:
            compiled.append(sum(node.op.startswith("call") for node in gm.graph.nodes))
            return get_backend("aot_eager").compile(gm, inputs, **options)

    monkeypatch.setattr(graphs, "get_backend", lambda name: Stub())
    with without_trials():
        yield compiled


def gated(x: torch.Tensor, gates: torch.Tensor) -> torch.Tensor:
    for gate in gates:
        x = torch.sin(x) + 1
        if (x.sum() * gate) > 0:
            x = torch.relu(x) * 2
    return x


def call(compiled: Any, gates: list[float]) -> None:
    x = torch.rand(4)
    assert torch.equal(compiled(x, torch.tensor(gates)), gated(x, torch.tensor(gates)))


def test_one_path_is_compiled_whole_after_it_was_seen_again(no_inductor: list[int]) -> None:
    compiled = magpy_core.compile(gated, wait=True)
    for count in range(1, 8):
        call(compiled, [1.0, -1.0, 1.0])
        assert bool(no_inductor) == (count > 4), "recorded four times"
    region = region_of(compiled)
    assert len(region.captures) == region.recordings == 1 and region.hits == 3
    assert region.policy.fragments is None


def test_two_paths_are_compiled_whole(no_inductor: list[int]) -> None:
    compiled = magpy_core.compile(gated, wait=True)
    for count in range(12):
        call(compiled, [1.0, -1.0, 1.0 if count % 2 else -1.0])
    region = region_of(compiled)
    assert len(region.captures) == region.recordings == 2 and region.hits == 8
    assert region.policy.fragments is None


def test_many_paths_are_cut_before_anything_is_compiled(no_inductor: list[int]) -> None:
    compiled = magpy_core.compile(gated, wait=True)
    for count in range(30):
        gates = [1.0 if count & bit else -1.0 for bit in (1, 2, 4)]
        call(compiled, gates)
    region = region_of(compiled)
    assert region.policy.fragments is not None and not region.hits
    assert no_inductor and max(no_inductor) < 8, "only stretches are compiled"
    assert [recompile.name for recompile in region.recompiles] == ["a branch on tensor data or a random number"] * 1


def test_a_capture_with_one_decision_is_compiled_at_its_second_call(no_inductor: list[int]) -> None:
    compiled = magpy_core.compile(gated, wait=True)
    call(compiled, [1.0])
    call(compiled, [1.0])
    assert no_inductor and region_of(compiled).hits == 1


def test_a_capture_that_is_retired_while_it_is_held_stays_so(no_inductor: list[int]) -> None:
    compiled = magpy_core.compile(gated, wait=True)
    call(compiled, [1.0, -1.0])
    region = region_of(compiled)
    region.retire()
    region.policy._end_sampling(region.captures)
    for _ in range(6):
        call(compiled, [1.0, -1.0])
    assert not no_inductor and not region.hits


def test_where_it_can_not_be_cut_two_paths_are_compiled(no_inductor: list[int]) -> None:
    space: dict[str, Any] = {"torch": torch}
    exec(compile("def gated(x, gates):\n" + SOURCE, "<no file>", "exec"), space)
    compiled = magpy_core.compile(space["gated"], wait=True)
    for count in range(30):
        call(compiled, [1.0 if count & bit else -1.0 for bit in (1, 2, 4)])
    assert region_of(compiled).policy.fragments is None


SOURCE = """
    for gate in gates:
        x = torch.sin(x) + 1
        if (x.sum() * gate) > 0:
            x = torch.relu(x) * 2
    return x
"""


class Training:
    """Steps whose graphs hold their writes until the decisions are known, beside a model that is trained in eager mode."""

    def __init__(self) -> None:
        self.weights = [torch.full((4,), 0.5, requires_grad=True) for _ in "ab"]
        session = Session(mode="compiled", backend="inductor", background=True)
        self.region = session.region(self.step, kind="function", name="step", file=__file__, line=1, target=self.step)

    @staticmethod
    def step(weight: torch.Tensor, gates: torch.Tensor) -> float:
        loss = gated(weight, gates).sum()
        weight.grad = None
        loss.backward()
        with torch.no_grad():
            weight -= 0.01 * weight.grad  # type: ignore[operator]
        return float(loss.detach())

    def run(self, *gates: float) -> None:
        compiled, plain = self.weights
        assert self.region(compiled, torch.tensor(gates)) == self.step(plain, torch.tensor(gates))
        assert torch.equal(compiled, plain)


@pytest.fixture
def training(monkeypatch: pytest.MonkeyPatch) -> Training:
    """Compiled in the background, by a process that is always done, in a program that can afford anything."""
    monkeypatch.delenv("MAGPY_COMPILE", raising=False)
    monkeypatch.setattr(background, "available", lambda: True)
    monkeypatch.setattr(background.QUEUE, "poll", lambda compilation, work: True)
    monkeypatch.setattr(background.Compilation, "result", background.Result(1.0))
    monkeypatch.setattr(Budget, "is_worthwhile", staticmethod(lambda waiting, seconds, elapsed: True))
    monkeypatch.setattr(Budget, "affords_loading", lambda self, *seconds, region="": True)
    monkeypatch.setattr(Budget, "affords", lambda self, *seconds: True)
    return Training()


def recordings(region: Region, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    made: list[int] = []
    record = region.record
    monkeypatch.setattr(region, "record", lambda *args: (made.append(region.calls), record(*args))[1])
    return made


def test_the_path_is_looked_at_again_before_code_is_loaded(training: Training, monkeypatch: pytest.MonkeyPatch) -> None:
    made = recordings(training.region, monkeypatch)
    for _ in range(12):
        training.run(1.0, -1.0, 1.0)
    assert made == [2, 3, 4, 5, 7], "the first call is not recorded; the sixth finds that code has arrived"
    assert training.region.hits == 5 and [c.holds_writes for c in training.region.captures] == [True]


def test_code_for_a_path_that_the_program_has_left_is_not_loaded(training: Training, no_inductor: list[int]) -> None:
    for _ in range(5):
        training.run(1.0, -1.0, 1.0)
    for _ in range(2):
        training.run(1.0, 1.0, 1.0)
    assert not no_inductor and not training.region.captures
    for _ in range(20):
        training.run(1.0, 1.0, 1.0)
    assert not any(capture.holds_writes for capture in training.region.captures)


def test_a_training_step_with_many_paths_is_not_compiled_whole(training: Training, no_inductor: list[int]) -> None:
    for count in range(4):
        training.run(*(1.0 if count & bit else -1.0 for bit in (1, 2, 4)))
    assert not no_inductor and not training.region.captures
    for count in range(20):
        training.run(*(1.0 if count & bit else -1.0 for bit in (1, 2, 4)))
    assert not any(capture.holds_writes for capture in training.region.captures)


def test_paths_are_explored_when_the_program_can_afford_it(training: Training, monkeypatch: pytest.MonkeyPatch) -> None:
    affords = [True]
    monkeypatch.setattr(Budget, "affords", lambda self, *seconds: affords[0])
    made = recordings(training.region, monkeypatch)
    for _ in range(3):
        training.run(1.0, -1.0, 1.0)
    affords[0] = False
    for _ in range(9):
        training.run(1.0, -1.0, 1.0)
    assert made == [2, 3] and training.region.captures[0].is_held
    affords[0] = True
    for _ in range(9):
        training.run(1.0, -1.0, 1.0)
    assert made == [2, 3, 13, 15] and training.region.hits
