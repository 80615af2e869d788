"""How a run is going, in words and bars: the one text of the terminal's panel and the editor's view.

Key types: LiveRun, LiveText.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from lsp_server.formats import step_text
from lsp_server.formats.compiling import CompileProgress
from lsp_server.formats.loss import LossReader
from lsp_server.formats.step_parts import rows, share_of
from lsp_server.formats.view import clean
from magpy_core.findings import StepReport

_BARS = 8
_MOSTLY = 0.5
_STALLED_S = 10.0  # without a step: then the rate is not that of now


@dataclass(frozen=True)
class Bar:
    """A region's share of the step, in percent."""

    name: str
    percent: float
    speedup: str

    @property
    def figures(self) -> str:
        """``61%  2.10x``"""
        return f"{self.percent:3.0f}%" + (f"  {self.speedup}" if self.speedup else "")


@dataclass(frozen=True)
class LiveText:
    """Lines that are empty where nothing is known. ``bars`` are sorted by share, of the step that ``bars_of`` names."""

    steps: str
    loss: str
    rate: str
    speeds: str
    standing: str
    compiling: str
    bars: tuple[Bar, ...] = ()
    bars_of: str = ""

    @property
    def head(self) -> str:
        """``step 1,234 of 5,000, loss 0.431``"""
        return ", ".join(filter(None, (self.steps, self.loss)))

    @property
    def lines(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.rate, self.speeds, self.standing, self.compiling)))

    def to_json(self) -> dict[str, Any]:
        bars = [{**asdict(bar), "figures": bar.figures.strip()} for bar in self.bars]
        return {"head": self.head, "lines": list(self.lines), "bars": bars, "barsOf": self.bars_of}


class LiveRun:
    """Follows the messages and the output of one run. ``steps``: after how many it is stopped; 0: never."""

    def __init__(self, steps: int = 0, clock: Callable[[], float] = time.monotonic) -> None:
        self.steps = steps
        self.compiling = CompileProgress(clock)
        self._figures = _Figures()
        self._clock = clock
        self._n = 0
        self._stepped_at = 0.0
        self._loss = LossReader()

    def take(self, message: Mapping[str, Any]) -> bool:
        """Handles a message of the runner; whether it was about what is shown. A malformed one raises KeyError, TypeError,
        ValueError or AttributeError."""
        match message["type"]:
            case "step":
                self._n, self._stepped_at = int(message["n"]), self._clock()
            case "compiling":
                self.compiling.take(message)
            case "progress":
                self._figures = _figures(message)
            case _:
                return False
        return True

    def output(self, data: bytes) -> None:
        """The program has printed something."""
        self._loss.feed(data)

    def text(self, *, ended: bool = False) -> LiveText:
        """``ended``: the run is over, and its last figures are its result."""
        of = f" of {self.steps:,}" if self.steps else ""
        since, figures = self._clock() - self._stepped_at, self._figures
        stalled = f"no step has ended for {step_text.duration(since)}" if self._n and since >= _STALLED_S else ""
        return LiveText(
            steps=f"step {self._n:,}{of}" if self._n else "",
            loss=f"loss {self._loss.last}" if self._loss.last else "",
            rate="" if ended else stalled or figures.rate,
            speeds=figures.speeds,
            standing=figures.result if ended else figures.standing,
            compiling="" if ended or (figures.speeds and not self.compiling.is_busy) else self.compiling.text(),
            bars=figures.bars,
            bars_of=figures.bars_of,
        )


@dataclass(frozen=True)
class _Figures:
    """What the last ``progress`` message says."""

    rate: str = ""
    speeds: str = ""
    standing: str = ""
    result: str = ""
    bars: tuple[Bar, ...] = ()
    bars_of: str = ""


def _figures(message: Mapping[str, Any]) -> _Figures:
    rate, step = message["rate"], message["step"]
    now = "" if rate is None else f"now {step_text.per_second(float(rate))} steps/s"
    if step is None:
        return _Figures(now)
    report = StepReport.from_json(step)
    bars = _bars(report)
    return _Figures(
        rate=now + _kind(float(message["compiled"])) if now else "",
        speeds=step_text.speeds(report),
        standing=step_text.standing(report),
        result=step_text.gained(report) or "not measured: too few steps ran both compiled and in eager mode",
        bars=bars,
        bars_of=share_of(report) if bars else "",
    )


def _kind(compiled: float) -> str:
    """How the steps ran, by the share of those that ran compiled."""
    if compiled > _MOSTLY:
        return ", compiled"
    return ", partly compiled" if compiled else ", not compiled"


def _bars(step: StepReport) -> tuple[Bar, ...]:
    """The largest parts, and how many others there are in one bar."""
    parts = [
        Bar(clean(row.name), round(row.share, 1), "" if row.speedup is None else f"{row.speedup:.2f}x")
        for row in rows(step)
        if row.share is not None
    ]
    parts.sort(key=lambda bar: -bar.percent)
    return fewer(tuple(parts), _BARS)


def fewer(bars: tuple[Bar, ...], most: int) -> tuple[Bar, ...]:
    """At most ``most`` bars: the smallest ones become one."""
    if len(bars) <= most:
        return bars
    kept, others = bars[: most - 1], bars[most - 1 :]
    return (*kept, Bar(f"{len(others)} others", round(sum(bar.percent for bar in others), 1), ""))
