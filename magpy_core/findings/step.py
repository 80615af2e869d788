"""Timings of the training step, in eager mode and compiled. Key types: StepReport, StepPart.

A step is everything from the end of one ``Optimizer.step`` to the end of the next; in a program without optimizers, one
outermost call of a region and everything since the previous one.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from magpy_core.findings.json_form import build

STEP_KINDS = ("plain", "compiled", "mixed", "waited")
"""How a step ran: in eager mode; with all the compiled code that was available; partly compiled; or it waited for a
recording or for compilation."""


Verdict = Literal["faster", "slower", "unclear", "unmeasured"]


def verdict(speedup: float | None, low: float | None, high: float | None) -> Verdict:
    """What a speedup with its 95% interval shows. It is a gain, or a loss, only if the interval excludes 1."""
    if speedup is None:
        return "unmeasured"
    if low is None or high is None or low <= 1.0 <= high:
        return "unclear"
    return "faster" if low > 1.0 else "slower"


@dataclass
class StepPart:
    """A region's time in one step: median milliseconds; None when not measured. If ``region`` (its id) is empty: the rest of
    the step, such as data loading, Python, host reads, and the backward pass of code outside regions."""

    name: str
    region: str = ""
    plain_forward_ms: float | None = None
    plain_backward_ms: float | None = None
    compiled_forward_ms: float | None = None
    compiled_backward_ms: float | None = None


@dataclass
class StepSample:
    """One step of the run, for a timeline: its number (from 1), milliseconds, and one of STEP_KINDS."""

    step: int
    ms: float
    kind: str


@dataclass
class StepReport:
    """``count`` steps, of which ``plain`` ran in eager mode and ``compiled`` with all the compiled code that was
    available. Times are medians of whole steps, which alternate between the two; None when not measured. ``speedup_low`` and
    ``speedup_high``: 95% interval.

    ``saved_s``: seconds that the run saved compared with eager mode, minus ``wait_s``; negative: lost. ``wait_s``: seconds
    that the program waited for recordings, and for compiling or loading code. ``compile_s``: seconds of compiling in the
    background. ``break_even``: the step from which on it had saved more than it had waited; None: not reached.
    """

    count: int = 0
    plain: int = 0
    compiled: int = 0
    plain_ms: float | None = None
    compiled_ms: float | None = None
    speedup_low: float | None = None
    speedup_high: float | None = None
    saved_s: float | None = None
    wait_s: float = 0.0
    compile_s: float = 0.0
    seconds: float = 0.0  # from the first step's beginning to the last one's end
    break_even: int | None = None
    parts: list[StepPart] = field(default_factory=list)
    timeline: list[StepSample] = field(default_factory=list)  # thinned out in long runs

    @property
    def speedup(self) -> float | None:
        return self.plain_ms / self.compiled_ms if self.plain_ms and self.compiled_ms else None

    @property
    def verdict(self) -> Verdict:
        """Of a compiled step, compared with a plain one."""
        return verdict(self.speedup, self.speedup_low, self.speedup_high)

    @property
    def shown_speedup(self) -> float | None:
        """The speedup that all outputs print; None: a clock on the wall would not show it, because the difference is not
        certain, or because the run as a whole has not gained from faster steps."""
        if self.verdict == "slower" or (self.verdict == "faster" and (self.saved_s is None or self.saved_s > 0.0)):
            return self.speedup
        return None

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "speedup": self.speedup, "verdict": self.verdict}

    @staticmethod
    def from_json(data: dict[str, Any]) -> StepReport:
        return build(StepReport, data)
