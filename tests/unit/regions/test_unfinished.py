"""A run that ends while its code is being compiled lets the next run of the same command finish, once."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from magpy_core.backends.background import ACCOUNT, QUEUE
from magpy_core.limits import LIMITS
from magpy_core.regions.budget.history import Kept
from magpy_core.regions.reports.performance import performance_findings
from magpy_core.regions.session import Session


def test_the_next_run_is_granted_more_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    monkeypatch.delenv("MAGPY_COMPILE", raising=False)
    seen = []
    for compiling in (1, 1, 1, 0, 1):
        monkeypatch.setattr(QUEUE, "pays_in", lambda seconds, compiling=compiling: bool(compiling))
        session = Session(mode="compiled", background=True, command="train.py")
        budget = session.options.budget
        assert budget is not None
        last = Kept("train.py").read()
        granted = ACCOUNT.share(0.0, 0.0) - LIMITS.compile_at_once
        assert granted == pytest.approx(last.granted, abs=1e-3)
        seen.append((granted > 0.0, budget.grants_next))
        session.finish()
        assert Kept("train.py").read().processor > 0.0
    assert seen == [(False, True), (True, False), (False, False), (False, False), (False, True)]
    ACCOUNT.expect(0.0)


@pytest.mark.parametrize(
    ("too_much", "says", "hint"),
    [
        (False, "f was still being compiled when the program ended: 7 calls ran", "in a longer run"),
        (
            True,
            "f was not compiled, which takes more time than it saves in so short a run: 7 calls ran",
            "`magpy-lsp compile`",
        ),
    ],
    ids=["too late", "not worth it"],
)
def test_the_finding_says_why_code_was_not_ready(too_much: bool, says: str, hint: str) -> None:
    capture = SimpleNamespace(is_compiling=True, plain_calls=7, costs_too_much=too_much)
    region: Any = SimpleNamespace(captures=[capture], name="f", id="f", location=None)
    (found,) = performance_findings(region, 10)
    assert found.code == "MP404" and found.message.startswith(says) and hint in found.hint
