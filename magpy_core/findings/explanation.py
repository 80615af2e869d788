"""Why the regions of a run are not fully compiled, derived from its report. Key functions: explain, clause.

A report is enough, so that a stored one is explained like a new one. Each reason has a text; where a finding is about the
cause, its message, value, line and advice are taken over.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from magpy_core.findings.finding import NO_ACTION, REPRODUCER, Finding
from magpy_core.findings.report import RegionSummary, Report
from magpy_core.findings.why_not import Reason, State, WhyNot

_LONGER = "run it for longer, or wait for the compiler with `--compile foreground`"
_WHY: Mapping[Reason, str] = {
    "called once": "{name} was called only {calls}: MagPy records the second call at the earliest",
    "budget": "recording {name} would have cost more time than so short a run can gain",
    "surroundings": "{name} was called inside other code that would see MagPy's operations{where}",
    "not recorded": "no call of {name} could be recorded",
    "refused": "{name} can't be compiled{where}",
    "cut": "only parts of {name} can be compiled{where}",
    "slower": "compiled code of {name} was slower, so it is not used",
    "slower before": "compiled code of {name} was slower in an earlier run of this command, so it was not compiled again",
    "again": "the program ended while {name} was being compiled{parts}",
    "compiling": "the program ended while {name} was being compiled{parts}",
    "no core": "all cores were busy, and the compiler got hardly any time for {name}{parts}",
    "queued": "the program ended before the compiler came to {name}{parts}",
    "costly": "compiling {name} would take more time than its code saves in so short a run{parts}",
    "not loaded": "{name} is compiled, but loading its code would have cost more time than so short a run can gain",
    "not served": "no later call of {name} was like the recorded one{where}",
    "late": "compiled code of {name} ran in only {hits} of {calls}",
    "small": "{name} has too few operations to gain anything from compiling",
    "replaced": "smaller parts of {name} are compiled in its place",
    "inside": "{name} is not compiled as a whole, but what it calls is compiled by itself",
    "missed": "compiled code of {name} fits only some of its calls, and ran in {hits} of {calls}{where}",
    "not called": "{name} was not called",
    "breaks": "{name} is not one graph: eager mode runs between {graphs} graphs{where}",
    "limit": "MagPy stopped compiling {name} after {captures} graphs, which each fit only some of its calls{where}",
    "closed": "later calls of {name} can't be compiled{where}, and compiled code ran in {hits} of {calls}",
    "wrong": "compiled code of {name} gave another result than eager mode, so it is not used{where}",
    "uncompiled": "the graphs of {name} run operator by operator{where}",
    "failed": "MagPy's monitor failed on {name}{where}",
}
_DO: Mapping[Reason, str] = {
    "budget": "run it for longer, or record at once with `--compile foreground`",
    "slower before": "`magpy-lsp cache clear` forgets that",
    "again": "run it again (the compiler may take more time in the next run), or wait for it with `--compile foreground`",
    "compiling": _LONGER,
    "no core": "leave it a core (`OMP_NUM_THREADS=1`), or wait for it with `--compile foreground`",
    "queued": _LONGER,
    "costly": "run it for longer, or compile it once ahead of time with `magpy-lsp compile`",
    "not loaded": "run it for longer, or again",
    "late": "run it for longer",
}
"""What to do, as a clause."""
_ELSE: Mapping[Reason, str] = {
    "called once": f"{NO_ACTION}: what runs once gains nothing from a compiler.",
    "not called": f"{NO_ACTION}.",
    "small": f"{NO_ACTION}: eager mode is as fast.",
    "replaced": f"{NO_ACTION}: the smaller parts are listed, too.",
    "inside": f"{NO_ACTION}: what it calls is listed, too.",
    "slower": f"{NO_ACTION}: eager mode is faster here.",
    "not recorded": "Call it in one thread, a few times, outside of other recordings.",
    "not served": "Run it with inputs of the same shapes and settings from call to call.",
    "missed": "Run it with inputs of the same shapes and settings from call to call.",
}
"""What to do about a region, where no finding says more."""
_CODES: Mapping[Reason, tuple[str, ...]] = {
    "surroundings": ("MP106",),
    "not recorded": ("MP1", "MP9"),
    "refused": ("MP1", "MP902", "MP203", "MP901"),
    "cut": ("MP1", "MP902", "MP203", "MP201"),
    "slower": ("MP401",),
    "not served": ("MP201", "MP203", "MP202", "MP205", "MP1"),
    "missed": ("MP201", "MP203", "MP202", "MP205", "MP1"),
    "breaks": ("MP1",),
    "limit": ("MP201", "MP203"),
    "closed": ("MP1", "MP902", "MP201"),
    "wrong": ("MP914", "MP902"),
    "uncompiled": ("MP913",),
    "failed": ("MP901",),
}
"""The codes of findings that say more, the most telling ones first."""
_CHANGES = ("limit", "missed", "not served")  # reasons for which a changed value is the cause
_PARTS = ("cut", "breaks")  # reasons for which what is between graphs has a cost
_UNSAID = ("expression", "call", "changed", "calls in eager mode meanwhile", REPRODUCER)
_SHOWN = 100  # characters of a value


def explain(report: Report) -> list[WhyNot]:
    """One for each region of MagPy's engine, and one for a training step of which only the parts are graphs."""
    found = [_of_region(report, region) for region in report.regions if region.engine == "magpy"]
    return [*_of_step(report), *found]


def clause(report: Report, region: RegionSummary) -> str:
    """Why compiled code of a region served few calls, with the finding that says so, and what to do. Empty if it served
    most."""
    reason = region.unused
    if not reason:
        return ""
    later = ", and they were not ready" if reason == "cut" else ""
    why = f"{_text(report, region, reason, _where(report, region))}{later}"
    return f"{why}: {_DO[reason]}" if reason in _DO else why


def _of_region(report: Report, region: RegionSummary) -> WhyNot:
    about = [f for f in report.findings if f.region == region.id]
    reason = _reason(region, about)
    if not reason:
        return WhyNot(region.id, region.name, "compiled", why=_compiled(report, region), file=region.file, line=region.line)
    finding = _cause(about, _CODES.get(reason, ()))
    share, is_limit = _share(region, reason, about)
    why = _text(report, region, reason, "")
    found = WhyNot(
        region.id,
        region.name,
        _state(report, region, reason),
        reason,
        f"{why[0].upper()}{why[1:]}.",
        value=_change(region) if reason in _CHANGES else "",
        file=region.file,
        line=region.line,
        share=share,
        is_limit=is_limit,
        rewrite=_sentence(_DO[reason]) if reason in _DO else _ELSE.get(reason, ""),
    )
    return found if finding is None else _with(found, finding)


def _of_step(report: Report) -> Iterator[WhyNot]:
    """What keeps a training step from being one graph, where its model and optimizer are graphs instead."""
    served = any(region.kind in ("step", "function") and region.hits for region in report.regions)
    finding = _cause([f for f in report.findings if f.code == "MP406" and f.is_actionable], ("MP406",))
    if served or finding is None:
        return
    share = _part(finding.cost_ms, finding.step_ms)
    in_parts = [r.step_share for r in report.regions if r.kind in ("module", "optimizer") and r.engine == "magpy"]
    is_limit = share is None and None not in in_parts  # data loading is no part of a region either
    if is_limit:
        share = round(max(100.0 - sum(filter(None, in_parts)), 0.0), 2)
    text = "The training step is not one graph: its model and its optimizer are compiled one by one."
    yield _with(WhyNot("", "the training step", "partly", "parted", text, share=share, is_limit=is_limit), finding)


def _with(found: WhyNot, finding: Finding) -> WhyNot:
    place = finding.location
    return WhyNot(
        found.region,
        found.name,
        found.state,
        found.reason,
        found.why,
        finding.code,
        finding.message,
        _value(finding) or found.value,
        place.file,
        place.range.start.line + 1,
        found.share,
        found.is_limit,
        finding.advice or found.rewrite,
    )


def _reason(region: RegionSummary, about: list[Finding]) -> Reason:
    codes = {finding.code for finding in about}
    if not region.calls:
        return "not called"
    if "MP901" in codes and not region.hits:
        return "failed"
    if region.wrong and not 2 * region.hits >= region.calls:
        return "wrong"
    if region.unused:
        return "slower" if region.unused == "cut" and "MP401" in codes else region.unused
    if not region.captures:  # of a check
        return "refused" if _cause(about, _CODES["refused"]) is not None else "not recorded"
    if "MP203" in codes:
        return "limit"
    if "MP913" in codes:
        return "uncompiled"
    if region.complete:
        return ""
    return "breaks" if region.graphs > 1 else "closed"


def _state(report: Report, region: RegionSummary, reason: Reason) -> State:
    served = region.hits > 0 or (reason == "cut" and any(r.kind == "stretch" and r.hits for r in report.regions))
    served = served or reason == "inside"
    return "partly" if served and reason not in ("slower", "uncompiled") else "eager"


def _compiled(report: Report, region: RegionSummary) -> str:
    if report.step is None:
        return "One graph, which `magpy-lsp run` compiles."
    awaited = f"; {region.awaited:,} ran in eager mode while it was being compiled" if region.awaited else ""
    return f"Compiled code ran in {region.hits:,} of {_times(region.calls, 'call')}{awaited}."


def _text(report: Report, region: RegionSummary, reason: Reason, where: str) -> str:
    calls = _times(region.calls, "time" if reason == "called once" else "call")
    return _WHY[reason].format(
        name=f"`{region.name}`", calls=calls, hits=f"{region.hits:,}", captures=max(region.captures, 1),
        graphs=region.graphs, where=where, parts=_parts(report),
    )  # fmt: skip


def _parts(report: Report) -> str:
    """`` (7 of 9 parts are compiled; the next run starts with them)``; empty if there are none that it could start with."""
    done = sum(region.parts_compiled for region in report.regions)
    if not done:
        return ""
    parts = sum(region.parts for region in report.regions)
    them = "it" if done == 1 else "them"
    return f" ({done:,} of {parts:,} parts {'is' if done == 1 else 'are'} compiled; the next run starts with {them})"


def _where(report: Report, region: RegionSummary) -> str:
    """`` (MP106 at train.py:12)``: the finding about it; empty if there is none."""
    about = [f for f in report.findings if f.region == region.id and f.code.startswith(("MP1", "MP2", "MP9"))]
    about = about or [f for f in report.findings if f.code == "MP406"]
    if not about:
        return ""
    finding = min(about, key=lambda one: one.severity.rank)
    shown = "" if finding.is_actionable else ", which `--details` shows"
    return f" ({finding.code} at {os.path.basename(finding.location.file)}:{finding.location.range.start.line + 1}{shown})"


def _cause(about: list[Finding], codes: tuple[str, ...]) -> Finding | None:
    """The finding that says most: one that a person would act on, then the most costly one."""
    for code in codes:
        found = [finding for finding in about if finding.code.startswith(code)]
        if found:
            return min(found, key=lambda f: (not f.is_actionable, -(f.cost_ms or 0.0), f.severity.rank, -f.count))
    return None


def _share(region: RegionSummary, reason: Reason, about: list[Finding]) -> tuple[float | None, bool]:
    """Percent of a step, and whether it is that at most."""
    if reason in _PARTS:
        costs = {
            f.location: part
            for f in about
            if f.code.startswith(("MP1", "MP902")) and (part := _part(f.cost_ms, f.step_ms)) is not None
        }
        if costs:
            return round(min(sum(costs.values()), 100.0), 2), False
    whole = region.step_share
    if whole is None:
        whole = max((part for f in about if (part := _part(f.at_most_ms, f.step_ms)) is not None), default=None)
    if whole is None or reason in _PARTS:
        return whole, whole is not None
    return round(whole * (1.0 - region.hits / max(region.calls, 1)), 2), False


def _part(ms: float | None, step_ms: float | None) -> float | None:
    return round(min(100.0 * ms / step_ms, 100.0), 2) if ms is not None and step_ms else None


def _value(finding: Finding) -> str:
    """``loss.item() = 2.31``, or ``len(x): 4 -> 8``, of at most two values."""
    shown = [value for value in finding.values if value.name not in _UNSAID][:2]
    texts = (f"{value.name}{': ' if ' -> ' in value.repr else ' = '}{value.repr}" for value in shown)
    return ", ".join(text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…" for text in texts)


def _change(region: RegionSummary) -> str:
    if not region.recompiles:
        return ""
    last = region.recompiles[-1]
    return f"{last.name}: {last.old} -> {last.new}"[:_SHOWN]


def _times(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."
