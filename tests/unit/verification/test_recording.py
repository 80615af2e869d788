"""A recorded graph is compared with the program's own call, where a run is to be verified."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import magpy_core
from magpy_core.regions import region as regions
from magpy_core.regions.api import region_of
from magpy_core.verification import Plan

TOTAL = torch.zeros(4)


def step(x: torch.Tensor) -> dict[str, Any]:
    TOTAL.add_(x)
    return {"both": (torch.tanh(x) * 2, TOTAL.sum()), "dropped": torch.nn.functional.dropout(x)}


def calls(monkeypatch: pytest.MonkeyPatch, *wrong: tuple[str, Any], number: int = 3) -> tuple[Any, list[torch.Tensor]]:
    """The region after some calls, and what they have left. ``wrong``: nodes that are recorded as another operation."""
    real = regions.Capture

    def capture(trace: Any, live: Any, settings: Any) -> Any:
        for node in trace.graph.nodes:
            node.target = dict(wrong).get(node.name, node.target)
        return real(trace, live, settings)

    monkeypatch.setattr(regions, "Capture", capture)
    compiled: Any = magpy_core.compile(step, wait=True, same_random=True)
    region = region_of(compiled)
    region.options.verify = Plan.parse("100")
    TOTAL.zero_()
    torch.manual_seed(0)
    left = []
    for _ in range(number):
        found = compiled(torch.randn(4))
        left += [*found["both"], found["dropped"], TOTAL.clone()]
    return region, [*left, torch.rand(1)]


def plain(number: int = 3) -> list[torch.Tensor]:
    TOTAL.zero_()
    torch.manual_seed(0)
    left = []
    for _ in range(number):
        found = step(torch.randn(4))
        left += [*found["both"], found["dropped"], TOTAL.clone()]
    return [*left, torch.rand(1)]


def same(a: list[torch.Tensor], b: list[torch.Tensor]) -> bool:
    return all(torch.allclose(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize(
    ("wrong", "operation", "underlined"),
    [
        (("tanh", torch.sin), "mul", "`torch.tanh(x) * 2`"),
        (("add_", "sub_"), "sum", "`TOTAL.sum()`"),
        (("dropout", torch.nn.functional.alpha_dropout), "alpha_dropout", "`torch.nn.functional.dropout(x)`"),
    ],
    ids=["a result", "a write", "random numbers"],
)
def test_a_recording_error_is_found_and_serves_no_call(
    monkeypatch: pytest.MonkeyPatch, wrong: tuple[str, Any], operation: str, underlined: str
) -> None:
    region, left = calls(monkeypatch, wrong)
    assert same(left, plain()) and not region.hits and region.disabled
    (finding,) = (one for one in region.findings.values() if one.code == "MP914")
    assert finding.message.startswith(
        f"The graph that MagPy has recorded gives another value than the program for {underlined}"
    )
    values = {value.name: value.repr for value in finding.values}
    assert finding.hint.startswith("MagPy's recording is wrong") and values["at fault"] == "MagPy"
    assert values.get("operations", "") == operation


def test_a_right_recording_serves_the_calls_after_that(monkeypatch: pytest.MonkeyPatch) -> None:
    region, left = calls(monkeypatch, number=6)
    assert same(left, plain(6))
    assert not [one for one in region.findings.values() if one.code == "MP914"]
    assert region.hits == 4, "the first one is recorded, and the second one compared"


def test_a_call_that_raises_is_the_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    def checked(x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.cholesky(x) * 2

    compiled: Any = magpy_core.compile(checked, wait=True)
    region_of(compiled).options.verify = Plan.parse("100")
    eye: Callable[[float], torch.Tensor] = lambda n: torch.eye(3) * n  # noqa: E731
    compiled(eye(1.0))
    with pytest.raises(torch.linalg.LinAlgError):
        compiled(eye(-1.0))
    assert torch.equal(compiled(eye(4.0)), torch.eye(3) * 4)
