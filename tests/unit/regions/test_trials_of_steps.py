"""Which regions of whole steps reports show when a program ends."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from magpy_core.regions.session import Session


def calls(session: Session, number: int, *, parts: bool) -> None:
    net = nn.Linear(2, 2)
    inner = session.region("net", kind="module", name="net", file=__file__, line=1, target=net.forward)

    def step() -> torch.Tensor:
        result: torch.Tensor = net(torch.ones(2)).sum()
        return result

    whole = session.step_function(
        "step", name="step", file=__file__, line=2, target=step, parts=[inner] if parts else [], kind="step"
    )
    for _ in range(number):
        whole.region()


@pytest.mark.parametrize(("number", "parts", "shown"), [(3, False, ["step"]), (3, True, ["step"]), (0, False, [])])
def test_a_step_that_was_never_recorded(number: int, parts: bool, shown: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that is too short for a recording has run its steps all the same; its parts show them if they had as many
    calls by themselves."""
    session = Session(mode="compiled", backend="eager")
    monkeypatch.setattr("magpy_core.regions.region.Region.record", lambda region, args, kwargs, held: region.target())
    calls(session, number, parts=parts)
    session.finish()
    assert [region.name for region in session.regions if region.kind == "step"] == shown
