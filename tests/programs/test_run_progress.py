"""What a run says of how it is going: seldom, in the figures of its report, and without ever ending it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from magpy_core.findings import StepReport, StepSample
from magpy_core.runner.pace import Pace
from magpy_core.runner.protocol import Decoder, encode
from magpy_core.runner.request import SESSIONS
from tests.programs.runner_help import under_magpy, write

REPORT = StepReport(count=8, plain=2, compiled=6, plain_ms=3.0, compiled_ms=2.0, timeline=[StepSample(1, 3.0, "plain")])
PROGRAM = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh())
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for n in range(60):
    optimizer.zero_grad()
    loss = model(torch.ones(4, 8)).sum()
    loss.backward()
    optimizer.step()
"""


def test_a_message_at_most_every_half_second_and_one_at_the_end() -> None:
    sent: list[Any] = []
    asked: list[int] = []

    def report() -> StepReport:
        asked.append(1)
        return StepReport(count=len(asked) * 4, compiled=len(asked) * 3)

    pace = Pace(sent.append, interval=1000.0)
    for n in range(1, 100):
        pace.stepped(n, float(n), report)
    assert len(sent) == len(asked) == 1 and sent[0]["rate"] is None
    pace.finish(100, REPORT)
    assert len(sent) == 2 and sent[1]["step"] == {**REPORT.to_json(), "timeline": []}
    Pace(sent.append).finish(0, REPORT)
    assert len(sent) == 2, "no step, nothing to say"


def test_rate_and_share_are_of_the_last_seconds() -> None:
    sent: list[Any] = []
    pace = Pace(sent.append, interval=0.0)
    start = 1e9  # the clock itself is far behind, so that no message took any time
    for second, (steps, compiled) in enumerate(
        [(1, 0), (11, 0), (21, 10), (31, 20), (41, 30), (51, 40), (61, 50), (71, 60)]
    ):
        pace.stepped(steps, start + second, lambda steps=steps, compiled=compiled: StepReport(steps, compiled=compiled))  # type: ignore[misc]
    assert [m["rate"] for m in sent] == [None, *[10.0] * 7]
    assert [m["compiled"] for m in sent][:3] == [0.0, 0.0, 0.5] and sent[-1]["compiled"] == 1.0


def test_messages_that_take_long_are_rarer(monkeypatch: pytest.MonkeyPatch) -> None:
    from magpy_core.runner import pace as module

    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    sent: list[Any] = []
    pace = Pace(sent.append)

    def slow() -> StepReport:
        now[0] += 0.1
        return REPORT

    for n in range(1, 201):
        pace.stepped(n, now[0], slow)
        now[0] += 0.1
    assert len(sent) == 3, "a tenth of a second each, in some twenty seconds: 1 %"


def test_a_message_is_typed() -> None:
    good: Any = {"type": "progress", "rate": None, "compiled": 0.0, "step": None}
    decoder = Decoder()
    assert decoder.feed(encode(good) + encode({**good, "rate": "fast"}) + encode({**good, "step": 3})) == [good]
    assert len(decoder.noise) == 2


def progress(messages: list[Any]) -> list[Any]:
    return [m for m in messages if m["type"] == "progress"]


@pytest.mark.slow
def test_a_runs_messages_have_the_figures_of_its_report(tmp_path: Path) -> None:
    engine = {"session_factory": SESSIONS["magpy"], "backend": "aot_eager", "compile": "foreground", "steps": 0}
    ran = under_magpy(tmp_path, script=write(tmp_path, PROGRAM), mode="run", **engine)
    found, step = progress(ran.messages), ran.outcome.report.step
    assert ran.outcome.kind == "ok" and step is not None and step.plain_ms and step.parts
    assert found[0]["step"]["count"] == 1 and found[-1]["step"] == {**step.to_json(), "timeline": []}
    counts = [m["step"]["count"] for m in found]
    assert counts == sorted(counts) and counts[-1] == 60 and len(counts) <= 60 / 2
    assert found[-1]["rate"] > 0 and 0 <= found[-1]["compiled"] <= 1


@pytest.mark.slow
def test_a_check_says_nothing_and_an_error_in_it_does_not_end_the_program(tmp_path: Path) -> None:
    name = write(tmp_path, PROGRAM + "print('end', n)")
    assert progress(under_magpy(tmp_path, script=name, mode="check", steps=0).messages) == []
    broken = """
    from tests.programs.runner_fake import FakeSession
    class Broken(FakeSession):
        def compile_progress(self):
            raise RuntimeError("no progress today")
    """
    write(tmp_path, broken, "broken.py")
    from tests.programs.runner_help import environment

    env = environment(PYTHONPATH=f"{tmp_path}:{environment()['PYTHONPATH']}")
    ran = under_magpy(tmp_path, script=name, mode="run", steps=0, session_factory="broken:Broken", env=env)
    assert ran.stdout == b"end 59\n" and ran.outcome.kind == "ok"
    assert "no progress today" in ran.finding("MP901").message
