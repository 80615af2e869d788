"""Findings about what the timings show. Key function: performance_findings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from magpy_core.findings import Finding, Value
from magpy_core.limits import LIMITS
from magpy_core.regions.region_protocol import RegionView
from magpy_core.regions.timing.comparison import Comparison

if TYPE_CHECKING:
    from magpy_core.capture.build import Capture

_GUARD_SECONDS = 50e-6


@dataclass(frozen=True)
class _Compared:
    """Median seconds of ``what``, in eager mode and compiled, which the run did ``times`` times compiled, and ``per_step``
    times in a step."""

    what: str
    plain: float
    compiled: float
    times: int
    per_step: float

    @property
    def ratio(self) -> float:
        return self.compiled / self.plain


def performance_findings(region: RegionView, steps: int) -> list[Finding]:
    """What the side-by-side timings of a region's steady calls show; nothing where there are too few."""
    if unready := [capture for capture in region.captures if capture.is_compiling]:
        return [_still_compiling(region, unready)]
    return [*_not_replayed(region), *_measured(region, steps)]


def _not_replayed(region: RegionView) -> list[Finding]:
    reasons = {one.reason for capture in region.captures if capture.hits for one in capture.replayed if one.reason}
    return [
        _finding("MP411", region, f"{region.name} is not replayed as a CUDA graph: {reason}.", None, {"reason": reason})
        for reason in sorted(reasons)
    ]


def slower_on_trial(region: RegionView, how: str, compared: Comparison) -> Finding | None:
    """That a region is slower than eager mode, if it is so by more than the clock's noise. ``how``: it was compiled.
    Seconds of calls."""
    of = _Compared(f"{region.name}, {how},", median(compared.eager), median(compared.compiled), region.calls, 1.0)
    return _slower(region, of, retired=True) if of.ratio > LIMITS.slower else None


def _measured(region: RegionView, steps: int) -> Iterator[Finding]:
    calls = _calls(region, steps)
    compared = _both_passes(region) or calls
    retired = any(capture.is_retired for capture in region.captures)
    slower = compared is not None and compared.ratio > LIMITS.slower
    if retired and not slower:
        compared = _not_looked_at(region) or _whole_steps(region) or compared
    if compared is not None and (slower or retired):
        yield _slower(region, compared, retired)
    if calls is not None:
        yield from _guards(region, calls)
    if compared is not None and not slower and not retired:
        yield from _not_paid(region, compared)


def _calls(region: RegionView, steps: int) -> _Compared | None:
    times = region.times
    if min(len(times.calls.eager), len(times.calls.compiled)) < LIMITS.shown_timings:
        return None
    what = f"A compiled call of {region.name}"
    return _Compared(
        what, median(times.calls.eager), median(times.calls.compiled), region.hits, region.calls / steps if steps else 1.0
    )


def _both_passes(region: RegionView) -> _Compared | None:
    passes = region.times.passes
    if not region.times.has_history or min(len(passes.plain), len(passes.compiled)) < LIMITS.shown_timings:
        return None
    plain, compiled = (median(s.both for s in sums) for sums in (passes.plain, passes.compiled))
    what = f"A step of {region.name}, forward and backward,"
    return _Compared(what, plain, compiled, region.times.steps.compiled_count, 1.0)


def _whole_steps(region: RegionView) -> _Compared | None:
    medians = region.times.steps.medians()
    if medians is None:
        return None
    what = f"A whole step with the compiled {region.name}"
    return _Compared(what, *medians, region.times.steps.compiled_count, 1.0)


def _not_looked_at(region: RegionView) -> _Compared | None:
    steps = region.times.steps
    if steps.windows.lost is None:
        return None
    what = f"The program, from call to call, with the compiled {region.name}"
    return _Compared(what, *steps.windows.lost, steps.compiled_count, region.calls / steps.count if steps.count else 1.0)


def _finding(code: str, region: RegionView, text: str, cost_s: float | None, values: dict[str, str]) -> Finding:
    shown = tuple(Value(name, value) for name, value in values.items())
    cost = None if cost_s is None else round(cost_s * 1e3, 4)
    return Finding(code, text, region.location, region=region.id, values=shown, cost_ms=cost)


def _slower(region: RegionView, of: _Compared, retired: bool) -> Finding:
    if of.ratio > LIMITS.slower:
        how = f"is {of.ratio:.2g}x slower than eager mode ({_ms(of.compiled)} instead of {_ms(of.plain)})"
    else:  # what was measured when it was given up, and what is known now, may differ
        how = f"is not faster than eager mode ({_ms(of.compiled)} and {_ms(of.plain)})"
    text = f"{of.what} {how}." + (" MagPy runs it in eager mode again." if retired else "")
    values = {"eager": _ms(of.plain), "compiled": _ms(of.compiled)}
    return _finding("MP401", region, text, max(of.compiled - of.plain, 0.0) * of.per_step, values)


def _guards(region: RegionView, calls: _Compared) -> Iterator[Finding]:
    guards = min(median(region.times.guard), calls.compiled) if region.times.guard else 0.0
    if guards > _GUARD_SECONDS and guards > calls.compiled * LIMITS.long_guards:
        count = max(len(c.guards) for c in region.captures) if region.captures else 0
        took = f"takes {_ms(guards)} of the {_ms(calls.compiled)} of a compiled call."
        text = f"Checking the {count} guards of {region.name} {took}"
        found = _finding(
            "MP402", region, text, guards * calls.per_step, {"guards": _ms(guards), "compiled": _ms(calls.compiled)}
        )
        if calls.compiled < calls.plain:
            found.make_fact(f"the call is faster than eager mode all the same ({_ms(calls.plain)})")
        yield found


def _not_paid(region: RegionView, of: _Compared) -> Iterator[Finding]:
    spent = sum(c.compile_seconds or 0.0 for c in region.captures)
    saved = max(of.plain - of.compiled, 0.0) * of.times
    if spent > LIMITS.long_compiling and spent > 2 * saved:
        text = (
            f"Compiling {region.name} took {spent:.1f} s; its {region.hits} compiled calls of this run saved {saved:.2g} s."
        )
        yield _finding("MP403", region, text, None, {"compile": f"{spent:.1f} s", "saved": f"{saved:.2g} s"})


def _still_compiling(region: RegionView, captures: Sequence[Capture]) -> Finding:
    plain = sum(capture.plain_calls for capture in captures)
    if any(capture.costs_too_much for capture in captures):
        text = f"{region.name} was not compiled, which takes more time than it saves in so short a run: {plain} calls ran in"
        text += " eager mode."
        hint = "No action needed. To have the code in every run, compile it once ahead of time with `magpy-lsp compile`."
    else:
        text = f"{region.name} was still being compiled when the program ended: {plain} calls ran in eager mode meanwhile."
        hint = "No action needed in a longer run, which gets the compiled code; `--compile foreground` waits for it."
    return Finding("MP404", text, region.location, hint=hint, region=region.id, values=(Value("calls", str(plain)),))


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms"
