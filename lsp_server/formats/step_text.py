"""The training step in plain English. Key functions: line, verified_graphs, brief, result, gained, why_not; while it runs:
speeds, standing.

Does not import rich, because the server uses it for its summaries.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from magpy_core.findings import RegionSummary, Report, StepReport
from magpy_core.findings.explanation import clause

_SHOWN_S = 0.05  # shorter waits and savings are noise in a run that lasts seconds


def line(report: Report) -> str:
    """``Step: 41.2 ms compiled, 63.0 ms in eager mode (1.53x, ...). Saved ...``; empty for a report without a step."""
    step = report.step
    if step is None:
        return ""
    if not step.count:
        return "Step: no step was completed, so nothing was measured."
    balance = _balance(step, is_kept=any(region.kept for region in report.regions))
    verified = verified_graphs(report.regions)
    return " ".join(
        [
            f"Step: {_times(step, report)}.",
            *(
                f"{text[0].upper()}{text[1:]}."
                for text in (balance, verified and f"{verified} verified against eager mode")
                if text
            ),
        ]
    )


def verified_graphs(regions: Iterable[RegionSummary]) -> str:
    """``11 of 12 graphs``: whose compiled code was compared with eager mode and gives the same; empty if there is none."""
    seen = list(regions)
    verified = sum(region.verified for region in seen)
    graphs = verified + sum(len(region.unverified) + region.wrong for region in seen)
    return f"{verified:,} of {graphs:,} graph{'' if graphs == 1 else 's'}" if graphs else ""


def brief(step: StepReport) -> str:
    """``step 41.2 ms compiled, 63.0 ms eager (1.53x)``; empty if not measured."""
    if step.compiled_ms is None or step.plain_ms is None:
        return ""
    text = f"step {milliseconds(step.compiled_ms)} ms compiled, {milliseconds(step.plain_ms)} ms eager"
    return text if step.shown_speedup is None else f"{text} ({step.shown_speedup:.2f}x)"


def result(step: StepReport) -> str:
    """``1.53x, saved 41.3 s of 310 s``: of a finished run; empty if not measured."""
    if step.speedup is None:
        return ""
    return _saved_of(step) if step.shown_speedup is None else f"{step.shown_speedup:.2f}x, {_saved_of(step)}"


def gained(step: StepReport) -> str:
    """``saved 41.3 s of 310 s, broke even at step 210``, of a finished run; empty if not measured."""
    if step.speedup is None:
        return ""
    return _saved_of(step) + (f", broke even at step {step.break_even:,}" if step.break_even is not None else "")


def _saved_of(step: StepReport) -> str:
    saved = step.saved_s or 0.0
    if abs(saved) < _SHOWN_S:
        return "neither saved nor lost time"
    whole = f" of {duration(step.seconds + saved)}" if saved > 0 else ""
    return f"{'saved' if saved > 0 else 'lost'} {duration(abs(saved))}{whole}"


def speeds(step: StepReport) -> str:
    """``24.3 steps/s compiled, 15.9 eager: 1.53x``; empty if neither was measured."""
    compiled, plain = (ms and per_second(1e3 / ms) for ms in (step.compiled_ms, step.plain_ms))
    if not compiled or not plain or step.speedup is None:
        return f"{compiled} steps/s compiled" if compiled else f"{plain} steps/s in eager mode" if plain else ""
    text = f"{compiled} steps/s compiled, {plain} eager"
    if step.verdict == "unclear":
        return f"{text}: not certain"
    return text if step.shown_speedup is None else f"{text}: {step.shown_speedup:.2f}x"


def standing(step: StepReport) -> str:
    """``saved 41.3 s so far, broke even at step 210``, of a run that goes on; empty if not measured."""
    if step.saved_s is None:
        return ""
    if abs(step.saved_s) < _SHOWN_S:
        return "neither saved nor lost time so far"
    text = f"{'saved' if step.saved_s > 0 else 'lost'} {duration(abs(step.saved_s))} so far"
    if step.break_even is not None:
        return f"{text}, broke even at step {step.break_even:,}"
    more = _more_steps(step, -step.saved_s)
    return text if more is None else f"{text}, even in about {_compiled_steps(more)}"


def per_second(rate: float) -> str:
    """About three digits: ``0.123``, ``1.23``, ``12.3``, ``1,234``."""
    return milliseconds(rate)


def milliseconds(value: float) -> str:
    """About three digits: ``0.123``, ``1.23``, ``12.3``, ``1,234``."""
    if value < 1:
        return f"{value:.3f}"
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 1000 else f"{value:,.0f}"


def duration(seconds: float) -> str:
    """``0.42 s``, ``3.1 s``, ``269 s``, ``18 min 24 s``, ``5 h 50 min``."""
    if seconds < 600:
        return f"{seconds:.{2 if seconds < 1 else 1 if seconds < 100 else 0}f} s"
    if seconds < 3600:
        minutes, rest = divmod(round(seconds), 60)
        return f"{minutes} min {rest} s"
    hours, rest = divmod(round(seconds / 60), 60)
    return f"{hours:,} h {rest} min"


def _times(step: StepReport, report: Report) -> str:
    plain = f"{milliseconds(step.plain_ms)} ms in eager mode" if step.plain_ms is not None else ""
    if step.compiled_ms is not None and step.speedup is not None:
        return f"{milliseconds(step.compiled_ms)} ms compiled, {plain}{_verdict(step)}"
    if not step.compiled:
        return f"{plain or 'not measured'}; no step ran fully compiled{_reason(report)}"
    if step.compiled_ms is not None:
        compiled = f"{milliseconds(step.compiled_ms)} ms compiled"
        return f"{compiled}; too few eager steps to compare ({step.plain:,} of {step.count:,})"
    if plain:
        return f"{plain}; too few compiled steps to compare ({step.compiled:,} of {step.count:,}){_reason(report)}"
    ran = f"{step.plain:,} ran in eager mode and {step.compiled:,} compiled"
    few = f"not measured: of {step.count:,} step{'' if step.count == 1 else 's'}, {ran}, too few to compare"
    return f"{few}{_reason(report)}"


def _verdict(step: StepReport) -> str:
    low, high = step.speedup_low, step.speedup_high
    if low is None or high is None:
        return ": too few steps to compare them"
    if step.verdict == "unclear":
        return f": too noisy to tell which is faster ({low:.2f}x to {high:.2f}x)"
    if step.shown_speedup is None:
        return ": compiled steps are faster, but the run was not"
    interval = f"{step.shown_speedup:.2f}x, 95% interval {low:.2f} to {high:.2f}"
    return f": compiled is slower ({interval})" if step.verdict == "slower" else f" ({interval})"


_OF_SOME_CALLS = ("missed", "small", "replaced", "inside")
_KINDS = ("step", "function", "module", "optimizer", "stretch")


def why_not(report: Report) -> str:
    """Why compiled code served few steps of a run or none, and what to do: a clause. Empty if it served most."""
    if not report.regions:
        return "the program called no model and no optimizer that MagPy could record"
    unused = [region for region in report.regions if region.unused]
    if not unused:
        return ""
    region = min(
        unused,
        key=lambda one: (
            one.unused in _OF_SOME_CALLS,
            one.unused == "cut",
            _KINDS.index(one.kind) if one.kind in _KINDS else 9,
            -one.calls,
        ),
    )
    return clause(report, region)


def _reason(report: Report) -> str:
    why = why_not(report)
    return f": {why}" if why else ""


def _balance(step: StepReport, *, is_kept: bool) -> str:
    """``saved 41 s: 269 s instead of 310 s for 4,200 steps; waited ...; compiling took ...; broke even at step 210``.
    ``is_kept``: an earlier run has compiled some of the code."""
    parts = []
    if step.saved_s is not None:
        parts.append(_saved(step, step.saved_s))
    if step.wait_s >= _SHOWN_S:
        parts.append(f"waited {duration(step.wait_s)} for recordings and compiled code")
    if step.compile_s >= _SHOWN_S:
        parts.append(f"compiling took {duration(step.compile_s)} in the background")
    elif is_kept:
        parts.append("its code was compiled in an earlier run")
    if step.break_even is not None:
        parts.append(f"broke even at step {step.break_even:,}")
    elif step.saved_s is not None and step.saved_s <= -_SHOWN_S:
        parts.append(_outlook(step, -step.saved_s))
    return "; ".join(filter(None, parts))


def _saved(step: StepReport, saved: float) -> str:
    if abs(saved) < _SHOWN_S:
        return "neither saved nor lost time so far"
    plain = step.seconds + saved
    steps = f"{step.count:,} step{'' if step.count == 1 else 's'}"
    instead = f": {duration(step.seconds)} instead of {duration(plain)} for {steps}" if plain > 0 else ""
    return f"{'saved' if saved > 0 else 'lost'} {duration(abs(saved))}{instead}"


def _outlook(step: StepReport, lost: float) -> str:
    """When the run will break even, if compiled steps are certainly faster."""
    more = _more_steps(step, lost)
    if more is None:
        return "it has not broken even"
    return f"it has not broken even yet, which takes about {_compiled_steps(more)}"


def _more_steps(step: StepReport, lost: float) -> int | None:
    """Compiled steps until ``lost`` seconds are saved; None if those are not certainly faster."""
    if step.plain_ms is None or step.compiled_ms is None or (step.speedup_low or 0) <= 1:
        return None
    more = math.ceil(lost * 1e3 / (step.plain_ms - step.compiled_ms))
    return int(float(f"{more:.2g}"))  # the estimate is no better than that


def _compiled_steps(more: int) -> str:
    return f"{more:,} more compiled step{'' if more == 1 else 's'}"
