"""How a run is going, in words: the loss that it prints, its rate, what it has saved, and messages that are none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_server.formats.live import Bar, LiveRun, fewer
from lsp_server.formats.loss import LossReader
from lsp_server.formats.step_text import gained, result, speeds, standing
from magpy_core.findings import StepPart, StepReport
from tests.golden.test_formats import LOST, faster


def progress(step: StepReport | None, rate: float | None = 23.9, compiled: float = 1.0) -> dict[str, Any]:
    return {"type": "progress", "rate": rate, "compiled": compiled, "step": None if step is None else step.to_json()}


class Clock:
    def __init__(self) -> None:
        self.now = 50.0

    def __call__(self) -> float:
        return self.now


# -- the loss


@pytest.mark.parametrize(
    ("line", "loss"),
    [
        ("step 10 loss 0.31", "0.31"),
        ("Loss: 1.5e-3, lr: 0.1", "1.5e-3"),
        ("train_loss=2.25 val_loss=9", "2.25"),
        ("{'loss': 0.7, 'epoch': 1}", "0.7"),
        ('{"train/loss": 12}', "12"),
        ("loss = tensor(0.4321, grad_fn=<MeanBackward0>)", "0.4321"),
        ("\x1b[32mloss\x1b[0m: \x1b[1m3.5\x1b[0m", "3.5"),
        ("loss nan", "nan"),
        ("loss: -inf", "-inf"),
        ("loss 0.012345678901", "0.0123457"),
        ("loss 3,", "3"),
        ("lossless 3", ""),
        ("the loss function 3", ""),
        ("glossy loss", ""),
        ("loss 30%", ""),
        ("loss weights2.pt", ""),
        ("loss 2x", ""),
        ("criterion floss: 3", ""),
    ],
)
def test_the_loss_of_a_line(line: str, loss: str) -> None:
    reader = LossReader()
    reader.feed(line.encode())
    assert reader.last == "", "the line may go on"
    reader.feed(b"\n")
    assert reader.last == loss


def test_the_last_line_with_a_loss_counts_also_of_a_bar() -> None:
    reader = LossReader()
    reader.feed(b"loss 3\nloss 2\nepoch done\n")
    assert reader.last == "2"
    reader.feed(b" 10%|#   | loss=1.5\r 20%|##  | loss=1.4\r 30%")
    assert reader.last == "1.4"


@given(st.lists(st.binary(max_size=50)), st.integers(0, 10**6))
def test_any_output_may_come_in_any_pieces(pieces: list[bytes], loss: int) -> None:
    reader = LossReader()
    for piece in [*pieces, b"\n", *(bytes([b]) for b in b"loss %d\n" % loss), b"x" * 10_000]:
        reader.feed(piece)
    assert reader.last == str(loss) and len(reader._line) < 10_000


# -- figures


def test_nothing_is_said_of_what_is_unknown() -> None:
    text = LiveRun().text()
    assert (text.head, text.lines, text.bars) == ("", (), ())
    run = LiveRun(steps=30, clock=Clock())
    run.take({"type": "step", "n": 1})
    run.take(progress(None, rate=None))
    assert run.text().head == "step 1 of 30" and run.text().lines == ()
    run.take(progress(None, rate=7.0))
    assert run.text().lines == ("now 7.00 steps/s",), "of torch.compile, only the rate is known"


@pytest.mark.parametrize(
    ("compiled", "kind"), [(0.0, "not compiled"), (0.4, "partly compiled"), (0.6, "compiled"), (1.0, "compiled")]
)
def test_how_the_last_steps_ran(compiled: float, kind: str) -> None:
    run = LiveRun()
    run.take(progress(StepReport(count=9), 10.0, compiled))
    assert run.text().rate == f"now 10.0 steps/s, {kind}"


def test_a_rate_is_not_of_now_when_no_step_has_ended_for_long() -> None:
    run = LiveRun(clock=(clock := Clock()))
    run.take({"type": "step", "n": 4})
    run.take(progress(faster()))
    clock.now += 9.0
    assert run.text().rate.startswith("now ")
    clock.now += 14.0
    assert run.text().rate == "no step has ended for 23.0 s"


def test_what_is_compiled_is_said_until_its_speed_is_known() -> None:
    run = LiveRun()
    run.take({"type": "compiling", "running": [], "waiting": [], "ready": ["model: Net"]})
    assert run.text().compiling == "compiled: model: Net"
    run.take(progress(faster()))
    assert run.text().compiling == ""
    run.take({"type": "compiling", "running": [], "waiting": ["optimizer: SGD"], "ready": ["model: Net"]})
    assert run.text().compiling == "compiled: model: Net"


def test_at_the_end_its_result_is_left() -> None:
    run = LiveRun()
    run.take({"type": "compiling", "running": ["model: Net"], "waiting": [], "ready": []})
    run.take(progress(faster()))
    assert "compiling" in " ".join(run.text().lines)
    assert run.text(ended=True).lines == (speeds(faster()), "saved 41.0 s of 310 s, broke even at step 210")
    run.take(progress(StepReport(count=2)))
    assert "too few steps" in run.text(ended=True).lines[-1]


def test_words_for_speed_and_balance() -> None:
    assert speeds(faster()) == "24.3 steps/s compiled, 15.9 eager: 1.53x"
    assert speeds(replace(faster(), speedup_low=0.9)) == "24.3 steps/s compiled, 15.9 eager: not certain"
    assert speeds(LOST) == "24.3 steps/s compiled, 15.9 eager", "a gain that the clock would not show"
    assert speeds(replace(faster(), compiled_ms=None)) == "15.9 steps/s in eager mode"
    assert speeds(replace(faster(), plain_ms=None)) == "24.3 steps/s compiled" and speeds(StepReport()) == ""
    assert standing(faster()) == "saved 41.0 s so far, broke even at step 210"
    assert standing(LOST) == "lost 3.1 s so far, even in about 140 more compiled steps"
    assert standing(replace(LOST, speedup_low=0.9)) == "lost 3.1 s so far"
    assert standing(replace(LOST, saved_s=0.01)) == "neither saved nor lost time so far" and standing(StepReport()) == ""
    assert result(LOST) == "lost 3.1 s" and result(StepReport()) == ""
    assert result(faster()) == "1.53x, saved 41.0 s of 310 s"
    assert gained(LOST) == "lost 3.1 s" and gained(StepReport()) == ""
    assert result(replace(LOST, saved_s=None)) == "1.53x, neither saved nor lost time"


def test_bars_are_sorted_and_the_smallest_are_one() -> None:
    parts = [StepPart(f"r{n}\x1b", f"r{n}", plain_forward_ms=float(n)) for n in range(1, 13)]
    run = LiveRun()
    run.take(progress(StepReport(count=20, plain_ms=100.0, parts=parts)))
    bars = run.text().bars
    assert [bar.percent for bar in bars] == [12.0, 11.0, 10.0, 9.0, 8.0, 7.0, 6.0, 15.0] and bars[-1].name == "5 others"
    assert "\x1b" not in bars[0].name and run.text().bars_of == "eager"
    assert fewer(bars, 2) == (bars[0], Bar("7 others", 66.0, "")) and fewer(bars[:2], 2) == bars[:2]


@pytest.mark.parametrize(
    "message",
    [{"type": "progress"}, progress(None) | {"rate": "x"}, progress(None) | {"step": {"plain_ms": "x"}},
     progress(None) | {"step": {"parts": [3]}}, {"type": "step", "n": "?"}, {"type": "compiling"}],
)  # fmt: skip
def test_a_malformed_message_changes_nothing(message: dict[str, Any]) -> None:
    run = LiveRun()
    run.take(progress(faster()))
    before = run.text()
    with pytest.raises((KeyError, TypeError, ValueError, AttributeError)):
        run.take(message)
    assert run.text() == before
    assert run.take({"type": "hello", "pid": 1}) is False
