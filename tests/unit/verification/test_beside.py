"""The search for a cause in a forked process: what it finds arrives while it runs, and it ends with what asked for it."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch

from magpy_core.backends import fair_share
from magpy_core.limits import Limits
from magpy_core.runner.interrupts import interrupts_call
from magpy_core.verification import beside
from magpy_core.verification.beside import Tracing, Tracings
from magpy_core.verification.cause import Cause
from tests.limits import WITHOUT_SHARES
from tests.unit.verification.test_difference import traced

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not beside.available(), reason="no process can be forked"),
]
_END_S = 120.0


@pytest.fixture(autouse=True)
def imports_nothing(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(beside, "import_inductor", lambda: None)
    monkeypatch.setattr(beside, "compile_alone", nullcontext)
    monkeypatch.setattr(fair_share, "LIMITS", WITHOUT_SHARES)
    yield


def until(holds: Callable[[], Any]) -> Any:
    end = time.monotonic() + _END_S
    while not (found := holds()):
        assert time.monotonic() < end
        time.sleep(0.02)
    return found


def waits_for(file: Path) -> None:
    while not file.exists():
        time.sleep(0.02)


def test_what_is_known_arrives_before_the_end(tmp_path: Path) -> None:
    def work(report: Callable[[Cause], object]) -> Cause:
        assert torch.get_num_threads() == 1
        report(Cause("It is one of two.", ("aten.cos.default", "aten.sin.default")))
        waits_for(tmp_path / "go")
        return Cause("It is one.", ("aten.cos.default",), 0.5, "Inductor", "/tmp/difference-1.py")

    tracing = Tracing(work)
    first = until(tracing.news)
    assert first.text == "It is one of two. `magpy-lsp bisect` completes the search." and len(first.operations) == 2
    assert tracing.news() is None and not tracing.has_ended
    (tmp_path / "go").touch()
    until(lambda: tracing.has_ended)
    assert tracing.news() == Cause("It is one.", ("aten.cos.default",), 0.5, "Inductor", "/tmp/difference-1.py")
    assert tracing.news() is None


def test_a_file_that_is_written_is_named_before_torch_alone_was_tried(tmp_path: Path) -> None:
    file, go = str(tmp_path / "difference-1.py"), tmp_path / "go"

    def work(report: Callable[[Cause], object]) -> Cause:
        report(Cause("It is one.", ("aten.cos.default",), 0.5, "Inductor", file))
        waits_for(go)
        return Cause("It is one. Torch alone shows it.", ("aten.cos.default",), 0.5, "Inductor", file)

    tracing = Tracing(work)
    news = until(tracing.news)
    assert news.text == "It is one. Run this file to see whether torch alone shows it." and news.reproducer == file
    go.touch()
    until(lambda: tracing.has_ended)
    assert (last := tracing.news()) is not None and last.text == "It is one. Torch alone shows it."


def test_a_search_that_fails_says_so() -> None:
    def fails(report: Callable[[Cause], object]) -> Cause:
        raise RuntimeError("no graph")

    tracing = Tracing(fails)
    until(lambda: tracing.has_ended)
    cause = tracing.news()
    assert cause is not None and cause.text == "Its operations could not be told apart (RuntimeError: no graph)."


def test_one_that_is_killed_or_cancelled_has_ended(tmp_path: Path) -> None:
    def dies(report: Callable[[Cause], object]) -> Cause:
        report(Cause("It is one of two."))
        os.kill(os.getpid(), 9)
        raise AssertionError

    def goes_on(report: Callable[[Cause], object]) -> Cause:
        (tmp_path / "pid").write_text(str(os.getpid()))
        waits_for(tmp_path / "never")
        raise AssertionError

    killed, cancelled = Tracing(dies), Tracing(goes_on)
    until(lambda: killed.has_ended)
    assert killed.news() is not None
    pid = until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
    cancelled.cancel()
    until(lambda: cancelled.has_ended)
    assert not os.path.exists(f"/proc/{pid}") or cancelled.news() is None


def test_a_run_looks_into_few_differences_and_waits_within_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def work(gm: Any, inputs: Any, folder: Path, report: Any) -> Cause:
        waits_for(tmp_path / "go")
        return Cause(f"{inputs[0].sum().item():g}", reproducer=str(folder))

    monkeypatch.setattr(beside, "bisect", work)
    monkeypatch.setattr(beside, "LIMITS", Limits(bisected=1))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    tracings, x = Tracings(), torch.ones(3)
    tracing = tracings.start(traced(lambda x: x.cos()), [x])
    assert tracing is not None and tracings.start(traced(lambda x: x.cos()), [x]) is None
    x.zero_()  # the program goes on
    start = time.monotonic()
    tracings.wait(0.3)
    assert 0.3 <= time.monotonic() - start < 30 and tracings.are_running
    (tmp_path / "go").touch()
    tracings.wait(_END_S)
    assert not tracings.are_running
    assert tracing.news() == Cause("3", reproducer=str(tmp_path / "cache" / "magpy" / "differences"))
    monkeypatch.setattr(beside, "LIMITS", Limits())
    monkeypatch.setattr(beside, "free_memory", lambda: 1e6)
    assert tracings.start(traced(lambda x: x.cos()), [x]) is None, "what the program writes would not fit twice"


def test_who_no_longer_waits_gets_what_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also from a signal's handler."""

    def work(gm: Any, inputs: Any, folder: Path, report: Callable[[Cause], object]) -> Cause:
        report(Cause("It is one of two."))
        (tmp_path / "told").touch()
        waits_for(tmp_path / "never")
        raise AssertionError

    monkeypatch.setattr(beside, "bisect", work)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    tracings = Tracings()
    tracing = tracings.start(traced(lambda x: x.cos()), [torch.ones(3)])
    assert tracing is not None
    until((tmp_path / "told").exists)
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    with interrupts_call(tracings.skip):
        timer.start()
        tracings.wait(_END_S)
    timer.join()
    until(lambda: not tracings.are_running)
    cause = tracing.news()
    assert cause is not None and cause.text == "It is one of two. `magpy-lsp bisect` completes the search."


def test_nothing_that_goes_wrong_reaches_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(work: Any) -> Tracing:
        raise RuntimeError("no process")

    monkeypatch.setattr(beside, "Tracing", refuses)
    assert Tracings().start(traced(lambda x: x.cos()), [torch.ones(3)]) is None
