"""Some of CPython's own tests with every frame instrumented; all of them: ``python -m tests.soundness.stdlib_fuzz``."""

from __future__ import annotations

import importlib.util

import pytest

from tests.soundness import stdlib_fuzz

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("test.support") is None, reason="this Python comes without its own tests"),
]


MODULES = "test_class test_contextlib test_patma test_property test_scope test_super test_unpack_ex test_with".split()


@pytest.mark.parametrize("module", MODULES)
def test_the_same_tests_pass_with_every_frame_instrumented(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = stdlib_fuzz.compare(module, timeout=200, verbose=False, only=[])
    report = capsys.readouterr().out
    assert wrong == 0, report
    assert "not runnable" not in report, report


def test_a_difference_is_noticed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    plain = {"outcomes": {"a": "ok", "b": "ok", "c.test_slots": "ok"}}
    ours = {"outcomes": {"a": "ok", "b": "error"}, "failures": {"a": "KeyError(1)"}, "details": {}, "events": 1}
    monkeypatch.setattr(stdlib_fuzz, "run", lambda module, mode, timeout, only: plain if mode == "plain" else ours)
    assert stdlib_fuzz.compare("some", timeout=1, verbose=False, only=[]) == 2
    report = capsys.readouterr().out
    assert "b: ok -> error" in report and "recording of a failed: KeyError(1)" in report
    assert "explained c.test_slots: ok -> missing (counts all objects" in report
