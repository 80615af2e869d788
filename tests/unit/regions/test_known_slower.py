"""Code that an earlier run has shown to be slower is not compiled again: the graph's key says that it is the same."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from magpy_core.backends import background
from magpy_core.capture.outcome import WrongResult
from magpy_core.regions.budget.history import Kept, LastRun
from magpy_core.regions.region import Region
from magpy_core.regions.session import Session


@pytest.fixture(autouse=True)
def caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    monkeypatch.delenv("MAGPY_COMPILE", raising=False)


def f(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x * 2) + 1


def run(calls: int, size: int = 3) -> tuple[Session, Region]:
    """A run of the command ``t.py``, which affords everything. The compiler never gets to its code."""
    session = Session(mode="compiled", measure=True, background=True, command="t.py")
    assert session.options.budget is not None
    session.options.budget._unlimited = True
    region = session.region(f, kind="function", name="f", file=__file__, line=1, target=f)
    for i in range(calls):
        x = torch.full((size,), float(i))
        assert torch.equal(region(x), f(x))
    return session, region


def test_it_is_not_compiled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr(background.QUEUE, "poll", lambda one, work: asked.append(one))
    session, region = run(6)
    assert asked and region.captures[0].key is not None
    region.retire()
    session.finish()
    assert Kept("t.py").read().slower == {region.captures[0].key: 0}

    asked.clear()
    session, region = run(6)
    assert not asked and region.captures[0].is_retired and not region.disabled
    assert region.summary().unused == "slower before" and not region.findings
    session.finish()
    assert Kept("t.py").read().slower == {region.captures[0].key: 1}

    session, region = run(6, size=4)
    assert asked and not region.captures[0].is_retired, "another graph is another question"
    Kept("t.py").write(LastRun(slower={}))
    assert run(6)[1].captures[0].is_retired is False


def test_a_wrong_result_is_reported_where_the_region_is_captured_again_without_sizes_that_vary(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(background.QUEUE, "poll", lambda one, work: False)
    _, region = run(6)
    (capture,) = region.captures
    monkeypatch.setattr(type(region.learned), "withdraw", lambda self: True)
    region._drop(capture, WrongResult("Another value.", None))
    assert not region.disabled and [f.code for f in region.findings.values()] == ["MP914"]
