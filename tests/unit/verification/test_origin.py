"""The operation whose compiled code first gives other bits, and the call of a run in which it does."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import fx

from magpy_core.limits import LIMITS
from magpy_core.verification import Difference, Plan, Verdict, beside, origin
from magpy_core.verification.origin import FirstDifference, Origin, first_operation, found_within
from tests.unit.verification.test_difference import traced

aten = torch.ops.aten


def rounds_otherwise(*targets: Any) -> Callable[[fx.GraphModule, Sequence[Any]], Callable[[list[Any]], Any]]:
    """A compiler whose code rounds the results of these operations to another last place."""

    class Rounds(fx.Interpreter):
        def run_node(self, n: fx.Node) -> Any:
            result = super().run_node(n)
            if n.target not in targets:
                return result
            for one in result if isinstance(result, list | tuple) else [result]:
                one.mul_(1 + 2**-20)
            return result

    return lambda gm, inputs: lambda given: Rounds(gm).run(*given)


def layers(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    total = x.clone()
    total.add_(x @ w)
    mean, variance = torch.var_mean(torch.sigmoid(total).t(), 0)
    return (mean - variance).exp().sum()


@pytest.mark.parametrize(
    "target",
    [aten.mm.default, aten.add_.Tensor, aten.sigmoid.default, aten.var_mean.correction, aten.exp.default, aten.sum.default],
)
def test_the_first_operation_that_differs_is_named(target: Any) -> None:
    inputs = (torch.randn(4, 4), torch.randn(4, 4))
    found, why = first_operation(traced(layers), inputs, rounds_otherwise(target, aten.sum.default))
    assert found is not None and (found.operation, why) == (target.__name__.partition(".")[0], "")
    assert 1e-7 < found.apart < 1e-5


def test_what_is_written_in_place_is_compared_before_it_is_written_again() -> None:
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x.clone().mul_(3.0).add_(1.0)

    found, _ = first_operation(traced(twice), (torch.randn(8),), rounds_otherwise(aten.add_.Tensor))
    assert found is not None and found.operation == "add_"


def test_an_operation_of_the_backward_pass_is_named() -> None:
    inputs = (torch.randn(4, 4), torch.randn(4, 4, requires_grad=True))
    found, _ = first_operation(traced(layers), inputs, rounds_otherwise(aten.sigmoid_backward.default))
    assert found is not None and found.operation == "sigmoid_backward" and inputs[1].grad is None


def test_why_none_can_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = (torch.randn(4, 4), torch.randn(4, 4))
    assert first_operation(traced(layers), inputs, rounds_otherwise()) == (
        None, "with the values of all operations kept, compiled code gives eager mode's bits"
    )  # fmt: skip
    monkeypatch.setattr(origin, "free_memory", lambda: 2 * 100 / LIMITS.verify_memory)
    found, why = first_operation(traced(layers), inputs, rounds_otherwise(aten.exp.default))
    assert found is None and "too much memory" in why


def test_the_program_s_random_numbers_and_tensors_stay() -> None:
    def drops(x: torch.Tensor) -> torch.Tensor:
        x.add_(1.0)
        return torch.nn.functional.dropout(x, 0.5).exp()

    x, before = torch.zeros(64), torch.get_rng_state()
    found, _ = first_operation(traced(drops), (x,), rounds_otherwise(aten.exp.default))
    assert found is not None and found.operation == "exp"
    assert torch.equal(torch.get_rng_state(), before) and not x.any()


def test_the_first_call_that_differs_ends_the_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[float] = []

    def known(seconds: float, gm: fx.GraphModule, inputs: Sequence[Any]) -> tuple[Origin, str]:
        given.append(seconds)
        return Origin("addmm", "train.py:3", 1e-7), ""

    monkeypatch.setattr(origin, "found_within", known)
    first = FirstDifference(str(tmp_path), seconds=7.0)
    first.look(Verdict(0.0), traced(layers), (), 1)
    assert first.is_open and not list(tmp_path.iterdir())
    first.look(Verdict(0.0, unchecked="it communicates"), traced(layers), (), 2)
    assert first.is_open
    first.look(Verdict(0.0, Difference("result 0", "differs"), apart=0.5), traced(layers), (), 3)
    assert not first.is_open and given == [7.0]
    found = json.loads((tmp_path / "origin.json").read_text())
    assert found["origin"] == {"operation": "addmm", "where": "train.py:3", "apart": 1e-7, "step": 3}
    assert found["why"] == ["calls of compiled code could not be compared: it communicates"] and found["until"] is None


def test_calls_are_compared_until_the_time_is_up(tmp_path: Path) -> None:
    first = FirstDifference(str(tmp_path), seconds=7.0)
    for step in (1, 1, 2):
        assert first.wants(step)
        first.look(Verdict(2.0), traced(layers), (), step)
    assert not list(tmp_path.iterdir())
    first.look(Verdict(2.0), traced(layers), (), 3)
    assert not first.wants(4)
    found = json.loads((tmp_path / "origin.json").read_text())
    said = "it was looked for in 4 calls of compiled code, up to step 3, for 8 s, and none of them differs"
    assert found == {"origin": None, "why": [f"{said}; `magpy-lsp verify --origin-seconds N` looks longer"], "until": 3}


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(not beside.available(), reason="no process can be forked")
def test_the_operation_is_looked_for_within_a_limit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In a process that is ended then; what it has left is the program's."""
    monkeypatch.setattr(beside, "import_inductor", lambda: None)
    monkeypatch.setattr(beside, "compile_alone", nullcontext)
    inputs = (torch.randn(4, 4), torch.randn(4, 4))

    def found(gm: fx.GraphModule, given: Sequence[Any]) -> tuple[Origin, str]:
        assert given is inputs
        torch.manual_seed(5)
        (tmp_path / "pid").write_text(str(os.getpid()))
        return Origin("addmm", "train.py:3", 1e-7), "why"

    def hangs(gm: fx.GraphModule, given: Sequence[Any]) -> Any:
        threading.Event().wait()

    def fails(gm: fx.GraphModule, given: Sequence[Any]) -> Any:
        raise RuntimeError("no such kernel")

    def dies(gm: fx.GraphModule, given: Sequence[Any]) -> Any:
        os.kill(os.getpid(), 9)

    state = torch.get_rng_state()
    for way, seconds, where, why in (
        (found, 300.0, "train.py:3", "why"),
        (
            hangs,
            0.2,
            None,
            "in the first call that differs, and 0.2 s did not suffice; `magpy-lsp verify --origin-seconds N`",
        ),
        (fails, 300.0, None, "a graph could not be taken apart (RuntimeError: no such kernel)"),
        (dies, 300.0, None, "the process that looked for it was ended"),
    ):
        monkeypatch.setattr(origin, "first_operation", way)
        got, said = found_within(seconds, traced(layers), inputs)
        assert (None if got is None else got.where) == where and why in said, said
    assert int((tmp_path / "pid").read_text()) != os.getpid() and torch.equal(torch.get_rng_state(), state)


def test_where_no_process_can_be_forked_the_program_searches_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(gm: fx.GraphModule, given: Sequence[Any]) -> tuple[Origin, str]:
        return Origin("addmm", "train.py:3", 1e-7), ""

    monkeypatch.setattr(origin, "available", lambda: False)
    monkeypatch.setattr(origin, "first_operation", found)
    assert found_within(60.0, traced(layers), ()) == (Origin("addmm", "train.py:3", 1e-7), "")
    got, why = found_within(3.0, traced(layers), ())
    assert got is None and "about 5 s to compile" in why, "it could not be ended"


def test_a_plan_compares_each_call_and_no_recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MAGPY_VERIFY", raising=False)
    plan = Plan.parse(f"origin:3:2.5:{tmp_path}")
    assert plan.first and plan.every == 1 and not plan.compares_recordings and Plan.parse("3").compares_recordings
    assert plan.first_difference is not None and plan.first_difference.folder == str(tmp_path)
    assert plan.first_difference.seconds == 2.5
    assert not plan.first_difference.wants(3) and plan.first_difference.wants(4)
    monkeypatch.setenv("MAGPY_VERIFY", "0")
    assert not Plan.parse(f"origin:0:60:{tmp_path}").first
